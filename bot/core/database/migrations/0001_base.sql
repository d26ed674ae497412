-- Wake-ups and leases, which all else stands on. Names are qualified: nothing depends on a search path.

-- When a topic was last told of: notifications take a lock of the whole server, so that they are few.
create unlogged table tapebot.wake (
    topic text primary key,
    told timestamptz not null default '-infinity'
);

create function tapebot.tell(about text, pause interval default '20 milliseconds') returns void
language plpgsql as $$
declare
    due boolean;
begin
    insert into tapebot.wake (topic) select about
        where not exists (select from tapebot.wake where topic = about) on conflict do nothing;
    -- Whoever tells of it in this moment tells for us, too; a poll finds what falls between.
    update tapebot.wake set told = clock_timestamp() where ctid = (
        select ctid from tapebot.wake where topic = about and told < clock_timestamp() - pause
        for update skip locked
    ) returning true into due;
    if due then
        perform pg_notify('tapebot', about);
    end if;
end $$;

-- Who does what only one process may do. The epoch grows with each holder.
create table tapebot.lease (
    name text primary key,
    holder text not null,
    epoch bigint not null,
    until timestamptz not null
);

create function tapebot.lease_take(lease_name text, taker text, seconds float) returns bigint
language sql as $$
    insert into tapebot.lease as held (name, holder, epoch, until)
        values (lease_name, taker, 1, clock_timestamp() + make_interval(secs => seconds))
    on conflict (name) do update
        set holder = taker, epoch = held.epoch + 1,
            until = clock_timestamp() + make_interval(secs => seconds)
        where held.until <= clock_timestamp()
    returning epoch;
$$;

create function tapebot.lease_renew(names text[], epochs bigint[], seconds float) returns setof text
language sql as $$
    update tapebot.lease set until = clock_timestamp() + make_interval(secs => seconds)
        from unnest(names, epochs) as mine (name, epoch)
        where lease.name = mine.name and lease.epoch = mine.epoch and lease.until > clock_timestamp()
        returning lease.name;
$$;

create function tapebot.lease_give(lease_name text, held bigint) returns void
language sql as $$
    update tapebot.lease set until = '-infinity' where name = lease_name and epoch = held;
    select tapebot.tell('lease:' || lease_name, '0');
$$;
