-- wants pgmq
-- The message bus. A session is a group of one of pgmq's queues, and the lease on the group's head is the hold
-- of the session: its token is the head's msg_id and read_ct, as pgmq knows them. What lies behind the head is
-- read by the holder alone. The kind of a row is in its headers:
--   in      a message from a person           report  a channel's word on an answer
--   done    was the head, and is done with: only the hold's token, empty of words
--   hold    only a hold's token from its beginning
-- headers.returned counts how often a holder gave the row back alive.

create table tapebot.bus (
    one boolean primary key default true check (one),
    queues int not null check (queues between 1 and 256)
);
insert into tapebot.bus (queues) values (8);

do $$
declare
    each text;
    parts text[] := '{}';
begin
    for n in 0 .. (select queues - 1 from tapebot.bus) loop
        perform pgmq.create('inbound_' || n);
        each := 'q_inbound_' || n;
        execute format('create index %I on pgmq.%I ((headers ->> ''x-pgmq-group''), msg_id)', each || '_group', each);
        execute format(
            'create index %I on pgmq.%I ((headers ->> ''x-pgmq-group''), msg_id) where headers ->> ''kind'' = ''in''',
            each || '_in', each);
        execute format(
            'create index %I on pgmq.%I ((headers ->> ''x-pgmq-group''), msg_id) where headers ->> ''kind'' = ''report''',
            each || '_report', each);
        -- Rows live for seconds: without this the index on vt fills with dead ones faster than they are swept.
        execute format(
            'alter table pgmq.%I set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200, '
            'autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.2, '
            'autovacuum_vacuum_cost_delay = 0)', each);
        parts := parts || format(
            'select %s as queue, msg_id, read_ct, enqueued_at, vt, headers from pgmq.%I', n, each);
    end loop;
    execute 'create view tapebot.inbound as ' || array_to_string(parts, ' union all ');
end $$;

-- Platform ids of what was accepted. The call tells a publisher that asks again from a duplicate.
create table tapebot.seen (
    session text not null,
    id text not null,
    call uuid not null,
    at timestamptz not null default now(),
    primary key (session, id)
);
create index seen_at on tapebot.seen using brin (at);

-- From which shard of its channel a session was last heard of.
create table tapebot.route (
    session text primary key,
    shard int not null,
    shards int not null
);

create sequence tapebot.outgoing;

create table tapebot.outbox (
    id bigint primary key default nextval('tapebot.outgoing'),
    channel text not null,
    session text not null,
    answer text not null unique,
    body text not null,
    taken bigint,
    sent_at timestamptz not null default now()
);
create index outbox_channel on tapebot.outbox (channel, id);

create table tapebot.outfile (
    answer text not null references tapebot.outbox (answer) on delete cascade,
    number int not null,
    content bytea not null,
    primary key (answer, number)
);

-- The newest partial of each stream and the newest activity, until a gateway has read them.
create unlogged table tapebot.live (
    session text not null,
    slot text not null,
    channel text not null,
    id bigint not null,
    body text not null,
    primary key (session, slot)
);
create index live_channel on tapebot.live (channel);

create function tapebot.queue_of(whose text) returns int
language sql stable as $$
    select get_byte(sha256(convert_to(whose, 'UTF8')), 0) % queues from tapebot.bus;
$$;

-- All that changes which row is a group's head happens under its lock, and ids are given under it: so the order
-- of ids is that of commits.
create function tapebot.lock_session(whose text) returns void
language sql as $$ select pg_advisory_xact_lock(hashtextextended(whose, 0)); $$;

-- Put a row into a group; its lock is held. What is not the head need not be looked at by whoever looks for
-- free sessions; it becomes visible when the head goes, and after a minute in any case.
create function tapebot.enqueue(queue int, whose text, what text, content text, more jsonb default '{}') returns void
language plpgsql as $$
declare
    behind boolean;
begin
    execute format('select exists (select from pgmq.%I where headers ->> ''x-pgmq-group'' = $1)', 'q_inbound_' || queue)
        into behind using whose;
    perform pgmq.send(
        'inbound_' || queue,
        to_jsonb(content),
        jsonb_build_object('x-pgmq-group', whose, 'kind', what) || more,
        clock_timestamp() + case when behind then interval '1 minute' else interval '0' end
    );
    perform tapebot.tell('inbound:' || queue);
end $$;

-- The head went: whatever is next in the group is seen at once. The group's lock is held.
create function tapebot.promote(queue int, whose text) returns void
language plpgsql as $$
declare
    promoted bigint;
begin
    execute format(
        'update pgmq.%1$I set vt = clock_timestamp() where msg_id = (select min(msg_id) from pgmq.%1$I '
        'where headers ->> ''x-pgmq-group'' = $1) returning msg_id', 'q_inbound_' || queue
    ) into promoted using whose;
    if promoted is not null then
        perform tapebot.tell('inbound:' || queue, '0');
    end if;
end $$;

-- Accept a message: -1. A duplicate: -2. The session is full: how many wait.
create function tapebot.publish(
    whose text, platform_id text, asked uuid, content text, room int, from_shard int, of_shards int
) returns int
language plpgsql as $$
declare
    queue int := tapebot.queue_of(whose);
    before uuid;
    waiting int;
begin
    perform tapebot.lock_session(whose);
    select call into before from tapebot.seen where session = whose and id = platform_id;
    if before is not null then
        return case when before = asked then -1 else -2 end;
    end if;
    execute format(
        'select count(*) from (select from pgmq.%I where headers ->> ''x-pgmq-group'' = $1 '
        'and headers ->> ''kind'' = ''in'' limit $2) as waiting', 'q_inbound_' || queue
    ) into waiting using whose, room;
    if waiting >= room then
        return waiting;
    end if;
    insert into tapebot.seen (session, id, call) values (whose, platform_id, asked);
    insert into tapebot.route (session, shard, shards) values (whose, from_shard, of_shards)
        on conflict (session) do update set shard = excluded.shard, shards = excluded.shards
        where (route.shard, route.shards) is distinct from (excluded.shard, excluded.shards);
    perform tapebot.enqueue(queue, whose, 'in', content);
    return -1;
end $$;

-- What a process that holds sessions has to know, in one round trip: which of its holds are lost or asked for,
-- what arrived in them, and up to ``most`` sessions that were free and are its own from now on.
create function tapebot.look(
    lease float, holder text, most int, queues int[],
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
    here int;
    got int;
begin
    for here in select distinct each from unnest(held_queue) as each loop
        return query execute format($sql$
            with held as materialized (
                select h.*, t.msg_id is null as lost, t.headers ->> 'letgo' as letgo
                from unnest($1, $2, $3, $4, $5, $6, $7, $8) with ordinality
                    as h (queue, whose, token, reads, after_in, after_report, room, busy, n)
                left join pgmq.%1$I t on t.msg_id = h.token and t.read_ct = h.reads
                where h.queue = %2$s
            ),
            messages as (
                select held.n, held.busy, m.msg_id,
                    min(m.msg_id) over (partition by held.n) as first,
                    min(m.msg_id) filter (where m.deaths >= 2) over (partition by held.n) as suspect
                from held cross join lateral (
                    select i.msg_id, i.read_ct - coalesce((i.headers ->> 'returned')::int, 0) as deaths
                    from pgmq.%1$I i
                    where i.headers ->> 'x-pgmq-group' = held.whose and i.headers ->> 'kind' = 'in'
                        and i.msg_id > held.after_in
                    order by i.msg_id limit held.room
                ) m where not held.lost
            ),
            chosen as (
                -- What may be what kills its holders is worked alone.
                select n, msg_id from messages
                    where suspect is null or msg_id < suspect or (suspect = first and msg_id = first and not busy)
                union all
                select held.n, m.msg_id from held cross join lateral (
                    select r.msg_id from pgmq.%1$I r
                    where r.headers ->> 'x-pgmq-group' = held.whose and r.headers ->> 'kind' = 'report'
                        and r.msg_id > held.after_report
                    order by r.msg_id limit 32
                ) m where not held.lost
            ),
            marked as (
                update pgmq.%1$I m set read_ct = m.read_ct + 1, last_read_at = clock_timestamp()
                from chosen where m.msg_id = chosen.msg_id
                returning chosen.n, m.msg_id, m.read_ct, m.message #>> '{}' as body, m.headers
            )
            select 'lost', held.n, %2$s, null::bigint, null::int, null::text, null::jsonb from held where lost
            union all
            select 'letgo', held.n, %2$s, null, null, letgo, null from held where letgo is not null
            union all
            select * from (
                select 'more', m.n, %2$s, m.msg_id, m.read_ct, m.body, m.headers from marked m order by m.msg_id
            ) as more
        $sql$, 'q_inbound_' || here, here)
        using held_queue, held_group, held_token, held_reads, after_in, after_report, room, busy;
    end loop;
    if most <= 0 then
        return;
    end if;
    for here in
        select each from unnest(queues) with ordinality as wanted (each, place)
        where exists (
            select from tapebot.inbound i where i.queue = each and i.vt <= statement_timestamp()
        ) order by place
    loop
        -- As pgmq.read_grouped_head, which reads the whole queue where this takes what is visible by the index.
        return query execute format($sql$
            with free as (
                select m.msg_id from pgmq.%1$I m
                where m.vt <= statement_timestamp() and not exists (
                    select from pgmq.%1$I earlier
                    where earlier.headers ->> 'x-pgmq-group' = m.headers ->> 'x-pgmq-group'
                        and earlier.msg_id < m.msg_id
                )
                order by m.vt limit $1 for update of m skip locked
            )
            update pgmq.%1$I m
            set vt = clock_timestamp() + make_interval(secs => $2), read_ct = m.read_ct + 1,
                last_read_at = clock_timestamp(),
                headers = m.headers - 'letgo' - 'by' || jsonb_build_object('holder', $3)
            from free where m.msg_id = free.msg_id
            returning 'head', null::bigint, %2$s, m.msg_id, m.read_ct, m.message #>> '{}', m.headers
        $sql$, 'q_inbound_' || here, here) using most, lease, holder;
        get diagnostics got = row_count;
        most := most - got;
        exit when most <= 0;
    end loop;
end $$;

-- Renew holds; those that do not come back are lost.
create function tapebot.renew(lease float, held_queue int[], held_token bigint[], held_reads int[])
returns table (queue int, token bigint)
language plpgsql as $$
declare
    here int;
begin
    for here in select distinct each from unnest(held_queue) as each loop
        return query execute format($sql$
            update pgmq.%1$I m set vt = clock_timestamp() + make_interval(secs => $1)
            from unnest($2, $3, $4) as held (queue, token, reads)
            where held.queue = %2$s and m.msg_id = held.token and m.read_ct = held.reads
            returning %2$s, m.msg_id
        $sql$, 'q_inbound_' || here, here) using lease, held_queue, held_token, held_reads;
    end loop;
end $$;

-- Say whether a hold is still what it was, and keep it so until the transaction's end.
create function tapebot.fence(queue int, held_token bigint, held_reads int) returns text
language plpgsql as $$
declare
    what text;
begin
    execute format(
        'select headers ->> ''kind'' from pgmq.%I where msg_id = $1 and read_ct = $2 for no key update',
        'q_inbound_' || queue
    ) into what using held_token, held_reads;
    return what;
end $$;

-- Rows are done with; false where the hold is lost, and nothing was done.
create function tapebot.done(queue int, held_token bigint, held_reads int, ids bigint[]) returns boolean
language plpgsql as $$
begin
    if tapebot.fence(queue, held_token, held_reads) is null then
        return false;
    end if;
    execute format('delete from pgmq.%I where msg_id = any ($1) and msg_id <> $2', 'q_inbound_' || queue)
        using ids, held_token;
    if held_token = any (ids) then
        execute format(
            'update pgmq.%I set message = null, headers = headers - ''answer'' || ''{"kind": "done"}'' where msg_id = $1',
            'q_inbound_' || queue) using held_token;
    end if;
    return true;
end $$;

-- End a hold. What was worked on counts as returned, what was only fetched as never read.
create function tapebot.release(
    queue int, whose text, held_token bigint, held_reads int,
    gone bigint[], worked bigint[], fetched bigint[], pause float
) returns void
language plpgsql as $$
declare
    each text := 'q_inbound_' || queue;
    what text;
begin
    perform tapebot.lock_session(whose);
    -- Asked again after it was done, or too late: the lease has ended.
    execute format(
        'select headers ->> ''kind'' from pgmq.%I where msg_id = $1 and read_ct = $2 and vt > clock_timestamp() for update',
        each) into what using held_token, held_reads;
    if what is null then
        return;
    end if;
    execute format('delete from pgmq.%I where msg_id = any ($1) and msg_id <> $2', each) using gone, held_token;
    execute format('update pgmq.%I set read_ct = read_ct - 1 where msg_id = any ($1) and msg_id <> $2', each)
        using fetched, held_token;
    execute format(
        'update pgmq.%I set headers = headers || jsonb_build_object(''returned'', '
        'coalesce((headers ->> ''returned'')::int, 0) + 1) where msg_id = any ($1) or msg_id = $2', each
    ) using worked, held_token;
    if what in ('done', 'hold') or held_token = any (gone) then
        execute format('delete from pgmq.%I where msg_id = $1', each) using held_token;
        perform tapebot.promote(queue, whose);
    else
        execute format('update pgmq.%I set vt = clock_timestamp() + make_interval(secs => $2) where msg_id = $1', each)
            using held_token, pause;
        if pause = 0 then
            perform tapebot.tell('inbound:' || queue, '0');
        end if;
    end if;
end $$;

-- Hold a session without working it, where it is free; else its holder is asked to let go. ``token`` is null then.
create function tapebot.hold(whose text, asked text, content text, lease float, who text)
returns table (queue int, token bigint, reads int, holder text)
language plpgsql as $$
#variable_conflict use_variable
declare
    here int := tapebot.queue_of(whose);
    each text := 'q_inbound_' || tapebot.queue_of(whose);
    head pgmq.message_record;
begin
    perform tapebot.lock_session(whose);
    execute format(
        'select * from pgmq.%I where headers ->> ''x-pgmq-group'' = $1 order by msg_id limit 1 for update', each
    ) into head using whose;
    if head.msg_id is null then
        perform tapebot.enqueue(here, whose, 'hold', content);
    elsif head.vt > clock_timestamp() and head.headers ->> 'by' is distinct from asked then
        execute format(
            'update pgmq.%I set headers = headers || jsonb_build_object(''letgo'', $2::text) where msg_id = $1', each
        ) using head.msg_id, asked;
        perform tapebot.tell('inbound:' || here, '0');
        return query select here, null::bigint, null::int, head.headers ->> 'holder';
        return;
    end if;
    return query execute format(
        'update pgmq.%1$I set vt = clock_timestamp() + make_interval(secs => $2), read_ct = read_ct + 1, '
        'headers = headers - ''letgo'' || jsonb_build_object(''by'', $3::text, ''holder'', $4::text) '
        'where msg_id = (select min(msg_id) from pgmq.%1$I where headers ->> ''x-pgmq-group'' = $1) '
        'returning %2$s, msg_id, read_ct, $4::text', each, here
    ) using whose, lease, asked, who;
end $$;

-- Take a row out of its queue that nobody can work; false where the hold is lost.
create function tapebot.bury(queue int, whose text, held_token bigint, held_reads int, id bigint) returns boolean
language plpgsql as $$
begin
    perform tapebot.lock_session(whose);
    if tapebot.fence(queue, held_token, held_reads) is null then
        return false;
    end if;
    perform pgmq.archive('inbound_' || queue, id);
    if id = held_token then
        perform tapebot.promote(queue, whose);
    end if;
    return true;
end $$;

-- Keep no words of what was buried.
create function tapebot.silence() returns void
language plpgsql as $$
begin
    for n in 0 .. (select queues - 1 from tapebot.bus) loop
        execute format('update pgmq.%I set message = null where message is not null', 'a_inbound_' || n);
    end loop;
end $$;

-- Show partials and activity: of each slot the newest.
create function tapebot.show(whose text[], slots text[], channels text[], bodies text[]) returns void
language plpgsql as $$
begin
    insert into tapebot.live (session, slot, channel, id, body)
        select given.session, given.slot, given.channel, nextval('tapebot.outgoing'), given.body
        from unnest(whose, slots, channels, bodies) with ordinality as given (session, slot, channel, body, place)
        order by place
        on conflict (session, slot) do update set id = excluded.id, body = excluded.body;
    perform tapebot.tell('outbound:' || channel) from (select distinct unnest(channels) as channel) as told;
end $$;

-- Hand an answer to its channel, unless it is on its way, or its last report waits for its session.
create function tapebot.send(chan text, whose text, key text, content text, slot_done text, files bytea[])
returns void
language plpgsql as $$
declare
    reported boolean;
begin
    execute format(
        'select exists (select from pgmq.%I where headers ->> ''x-pgmq-group'' = $1 '
        'and headers ->> ''kind'' = ''report'' and headers ->> ''answer'' = $2)',
        'q_inbound_' || tapebot.queue_of(whose)
    ) into reported using whose, key;
    if reported then
        return;
    end if;
    delete from tapebot.live where session = whose and slot = slot_done;
    insert into tapebot.outbox (channel, session, answer, body) values (chan, whose, key, content)
        on conflict (answer) do nothing;
    if found then
        insert into tapebot.outfile (answer, number, content)
            select key, place, given from unnest(files) with ordinality as each (given, place) where given is not null;
        perform tapebot.tell('outbound:' || chan);
    end if;
end $$;

-- Give a channel's shard what it has to show, in order; an answer once for each mark.
create function tapebot.take(chan text, my_shard int, of_shards int, mark bigint, lease_name text, most int)
returns table (id bigint, kind text, answer text, body text)
language plpgsql as $$
#variable_conflict use_column
begin
    if mark > 0 and not exists (select from tapebot.lease where name = lease_name and epoch = mark) then
        return;
    end if;
    return query
        with due as (
            select o.id from tapebot.outbox o
            left join tapebot.route r on r.session = o.session and r.shards = of_shards
            where o.channel = chan and o.taken is distinct from mark and coalesce(r.shard, 0) = my_shard
            order by o.id limit most for update of o
        ),
        given as (
            update tapebot.outbox o set taken = mark from due where o.id = due.id
            returning o.id, 'answer', o.answer, o.body
        ),
        shown as (
            delete from tapebot.live l where l.channel = chan and my_shard = coalesce(
                (select r.shard from tapebot.route r where r.session = l.session and r.shards = of_shards), 0)
            returning l.id, 'live', null::text, l.body
        )
        select * from (select * from given union all select * from shown) as due_now order by 1;
end $$;

-- A channel's word on an answer, to its session; the last one ends the answer.
create function tapebot.report(whose text, key text, final boolean, content text) returns void
language plpgsql as $$
begin
    perform tapebot.lock_session(whose);
    if final then
        delete from tapebot.outbox where answer = key;
    end if;
    perform tapebot.enqueue(
        tapebot.queue_of(whose), whose, 'report', content,
        case when final then jsonb_build_object('answer', key) else '{}' end
    );
end $$;
