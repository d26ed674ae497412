-- What else processes share: who may use the bot, files that people sent, and updates on their way in.

-- One row. The version is another one with every change, and is what changes are compared by.
create table tapebot.roster (
    one boolean primary key default true check (one),
    version text not null,
    content bytea not null,
    claim text not null
);

-- Files by the SHA-256 of their bytes. Most are compressed already.
create table tapebot.blob (
    name text primary key,
    data bytea not null,
    kept_at timestamptz not null default now()
);
alter table tapebot.blob alter column data set storage external;

-- A platform's updates: arrived, then perhaps taken into a chat's lane, then handled. One that was handled
-- is remembered for a while without its words: a platform sends again what it thinks was not taken.
create table tapebot.spool (
    channel text not null,
    number bigint not null,
    raw bytea,
    known boolean not null default true,
    taken boolean not null default false,
    handled_at timestamptz,
    primary key (channel, number),
    check ((raw is null) = (handled_at is not null))
);
create index spool_waiting on tapebot.spool (channel, number) where raw is not null;
create index spool_bound on tapebot.spool (channel, known) where raw is not null;
create index spool_handled on tapebot.spool (handled_at) where handled_at is not null;

-- True once it is durable, and where it was there before; false where as many wait as may.
create function tapebot.spool_arrive(
    to_channel text, its_number bigint, its_raw bytea, of_known boolean, most int
) returns boolean language plpgsql as $$
begin
    if exists (select from tapebot.spool where channel = to_channel and number = its_number) then
        return true;
    end if;
    -- Those who come in the same moment may exceed it by as many as they are.
    if most <= (select count(*) from (
        select from tapebot.spool where channel = to_channel and known = of_known and raw is not null
        limit most
    ) as waiting) then
        return false;
    end if;
    insert into tapebot.spool (channel, number, raw, known)
        values (to_channel, its_number, its_raw, of_known) on conflict do nothing;
    perform tapebot.tell('spool:' || to_channel);
    return true;
end $$;

-- Into a lane. One that was handled meanwhile stays so.
create function tapebot.spool_take(to_channel text, its_number bigint, its_raw bytea) returns void
language sql as $$
    insert into tapebot.spool as there (channel, number, raw, taken)
        values (to_channel, its_number, its_raw, true)
    on conflict (channel, number) do update set taken = true where there.raw is not null;
$$;

-- Handled: those of these that arrived, and in whose lane they are no more.
create function tapebot.spool_settle(to_channel text, numbers bigint[], also_taken boolean) returns void
language sql as $$
    update tapebot.spool set raw = null, handled_at = now()
        where channel = to_channel and number = any (numbers) and raw is not null
            and (also_taken or not taken);
    delete from tapebot.spool where (channel, number) in (
        select channel, number from tapebot.spool where handled_at < now() - interval '2 days'
        order by handled_at limit 100
        for update skip locked
    );
$$;
