-- What runs for every message is planned once for each connection. A statement that is built as text is planned with
-- each call, which cost more than the work, so that each queue now has functions of its own. Processes of the version
-- before call the same functions as ever (look, publish, report, send, done) and can run beside this one.
--
-- headers.heard says that the holder listens to a topic of its own: what arrives in its sessions wakes it alone.

-- Plans are kept though a queue may be empty now and long later: never a plan that reads a whole queue. To read all of
-- an empty queue costs no more than to look into its index, so that a join may do the former for good: no statement
-- joins a queue. Each row is looked up by itself (offset 0 keeps it so), or by an array of ids.
do $outer$
declare
    n int;
    count int := (select queues from tapebot.bus);
    whole text;
    branches text;
    made record;
begin
    for n in 0 .. count - 1 loop
        whole := replace($sql$
-- What is new in holds: which are lost or asked for, and what arrived in them.
create function tapebot.news_{n}(
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
        with held as materialized (
            select h.*, t.msg_id is null as lost, t.headers ->> 'letgo' as letgo
            from unnest(held_queue, held_group, held_token, held_reads, after_in, after_report, room, busy)
                with ordinality as h (queue, whose, token, reads, after_in, after_report, room, busy, n)
            left join lateral (
                select q.msg_id, q.headers from pgmq.q_inbound_{n} q
                where q.headers ->> 'x-pgmq-group' = h.whose and q.msg_id = h.token and q.read_ct = h.reads offset 0
            ) t on true
            where h.queue = {n}
        ),
        messages as (
            select held.n, held.busy, m.msg_id,
                min(m.msg_id) over (partition by held.n) as first,
                min(m.msg_id) filter (where m.deaths >= 2) over (partition by held.n) as suspect
            from held cross join lateral (
                select i.msg_id, i.read_ct - coalesce((i.headers ->> 'returned')::int, 0) as deaths
                from pgmq.q_inbound_{n} i
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
                select r.msg_id from pgmq.q_inbound_{n} r
                where r.headers ->> 'x-pgmq-group' = held.whose and r.headers ->> 'kind' = 'report'
                    and r.msg_id > held.after_report
                order by r.msg_id limit 32
            ) m where not held.lost
        ),
        marked as (
            update pgmq.q_inbound_{n} m set read_ct = m.read_ct + 1, last_read_at = clock_timestamp()
            where m.msg_id = any (array(select msg_id from chosen))
            returning m.msg_id, m.read_ct, m.message #>> '{}' as body, m.headers
        )
        select 'lost', held.n, {n}, null::bigint, null::int, null::text, null::jsonb from held where lost
        union all
        select 'letgo', held.n, {n}, null, null, letgo, null from held where letgo is not null
        union all
        select * from (
            select 'more', chosen.n, {n}, m.msg_id, m.read_ct, m.body, m.headers
            from marked m join chosen on chosen.msg_id = m.msg_id order by m.msg_id
        ) as more;
end $$;

-- The first row of a group: what a hold is a lease on.
create function tapebot.head_{n}(whose text) returns bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return (
        select msg_id from pgmq.q_inbound_{n} where headers ->> 'x-pgmq-group' = whose order by msg_id limit 1
    );
end $$;

-- Take sessions that are free; as pgmq.read_grouped_head, which reads the whole queue.
create function tapebot.claim_{n}(lease float, holder text, heard boolean, most int)
returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    if not exists (select from pgmq.q_inbound_{n} where vt <= statement_timestamp()) then
        return;
    end if;
    return query
        with free as (
            select m.msg_id, m.headers ->> 'x-pgmq-group' as whose from pgmq.q_inbound_{n} m
            where m.vt <= statement_timestamp() and m.msg_id = tapebot.head_{n}(m.headers ->> 'x-pgmq-group')
            order by m.vt limit most for update of m skip locked
        )
        update pgmq.q_inbound_{n} m
        set vt = clock_timestamp() + make_interval(secs => lease), read_ct = m.read_ct + 1,
            last_read_at = clock_timestamp(),
            headers = m.headers - 'letgo' - 'by' - 'heard' || jsonb_build_object('holder', holder)
                || case when heard then '{"heard": true}'::jsonb else '{}' end
        where m.headers ->> 'x-pgmq-group' = any (array(select whose from free))
            and m.msg_id = any (array(select msg_id from free))
        returning 'head', null::bigint, {n}, m.msg_id, m.read_ct, m.message #>> '{}', m.headers;
end $$;

-- Put a row into a group, whose lock is held, and wake who will read it. What is not the head need not be seen by
-- whoever looks for free sessions: it becomes visible when the head goes, and after an hour in any case.
create function tapebot.enqueue_{n}(whose text, what text, content text, more jsonb) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    head record;
begin
    select msg_id, vt > clock_timestamp() and headers ? 'heard' as heard, headers ->> 'holder' as holder into head
        from pgmq.q_inbound_{n} where headers ->> 'x-pgmq-group' = whose order by msg_id limit 1;
    insert into pgmq.q_inbound_{n} (vt, message, headers) values (
        clock_timestamp() + case when head.msg_id is null then interval '0' else interval '1 hour' end,
        to_jsonb(content), jsonb_build_object('x-pgmq-group', whose, 'kind', what) || more
    );
    if head.heard then
        perform tapebot.tell('inbound:{n}@' || head.holder, '5 milliseconds');
    else
        perform tapebot.tell('inbound:{n}');
    end if;
end $$;

-- How many messages of a session wait, at most so many.
create function tapebot.waiting_{n}(whose text, most int) returns int
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return (select count(*) from (
        select from pgmq.q_inbound_{n}
        where headers ->> 'x-pgmq-group' = whose and headers ->> 'kind' = 'in' limit most
    ) as found);
end $$;

-- Whether the last report on an answer waits for its session.
create function tapebot.reported_{n}(whose text, key text) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return exists (
        select from pgmq.q_inbound_{n}
        where headers ->> 'x-pgmq-group' = whose and headers ->> 'kind' = 'report' and headers ->> 'answer' = key
    );
end $$;

create function tapebot.done_{n}(held_token bigint, held_reads int, ids bigint[]) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    perform from pgmq.q_inbound_{n} where msg_id = held_token and read_ct = held_reads for no key update;
    if not found then
        return false;
    end if;
    if ids <> array[held_token] then
        delete from pgmq.q_inbound_{n} where msg_id = any (ids) and msg_id <> held_token;
    end if;
    if held_token = any (ids) then
        update pgmq.q_inbound_{n} set message = null, headers = headers - 'answer' || '{"kind": "done"}'
            where msg_id = held_token;
    end if;
    return true;
end $$;
$sql$, '{n}', n::text);
        execute whole;
    end loop;

    -- Those that choose the queue: every call is a branch of its own, so that its plan is kept, too.
    for made in select * from (values
        ('function tapebot.waiting(queue int, whose text, most int) returns int',
            'return tapebot.waiting_{n}(whose, most)'),
        ('function tapebot.reported(queue int, whose text, key text) returns boolean',
            'return tapebot.reported_{n}(whose, key)'),
        ('function tapebot.enqueue(queue int, whose text, what text, content text, more jsonb default ''{}'') returns void',
            'perform tapebot.enqueue_{n}(whose, what, content, more)'),
        ('function tapebot.done(queue int, held_token bigint, held_reads int, ids bigint[]) returns boolean',
            'return tapebot.done_{n}(held_token, held_reads, ids)')
    ) as made (head, body) loop
        select string_agg(format('when %s then %s;', each, replace(made.body, '{n}', each::text)), ' ')
            into branches from generate_series(0, count - 1) as each;
        execute format('create or replace %s language plpgsql as $$ begin case queue %s end case; end $$',
            made.head, branches);
    end loop;

    select string_agg(format('when %1$s then return query select * from tapebot.news_%1$s(
            held_queue, held_group, held_token, held_reads, after_in, after_report, room, busy);', each), ' ')
        into branches from generate_series(0, count - 1) as each;
    whole := replace($sql$
-- What a process that holds sessions has to know, in one round trip: which of its holds are lost or asked for,
-- what arrived in them, and up to most sessions that were free and are its own from now on.
create function tapebot.poll(
    lease float, holder text, heard boolean, most int, queues int[],
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql as $$
declare
    here int;
    got int;
begin
    for here in select distinct each from unnest(held_queue) as each loop
        case here {news} end case;
    end loop;
    foreach here in array queues loop
        exit when most <= 0;
        case here {claim} end case;
        get diagnostics got = row_count;
        most := most - got;
    end loop;
end $$;
$sql$, '{news}', branches);
    select string_agg(format('when %1$s then return query select * from tapebot.claim_%1$s(
            lease, holder, heard, most);', each), ' ')
        into branches from generate_series(0, count - 1) as each;
    execute replace(whole, '{claim}', branches);
end $outer$;

-- For processes of the version before, which listen to no topic of their own.
create or replace function tapebot.look(
    lease float, holder text, most int, queues int[],
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql as $$
begin
    return query select * from tapebot.poll(
        lease, holder, false, most, queues, held_queue, held_group, held_token, held_reads,
        after_in, after_report, room, busy);
end $$;

create or replace function tapebot.tell(about text, pause interval default '20 milliseconds') returns void
language plpgsql as $$
declare
    last timestamptz;
begin
    select told into last from tapebot.wake where topic = about;
    if not found then
        insert into tapebot.wake (topic) values (about) on conflict do nothing;
    elsif last >= clock_timestamp() - pause then
        return;
    end if;
    -- Whoever tells of it in this moment tells for us, too; a poll finds what falls between.
    update tapebot.wake set told = clock_timestamp() where ctid = (
        select ctid from tapebot.wake where topic = about and told < clock_timestamp() - pause
        for update skip locked
    );
    if found then
        perform pg_notify('tapebot', about);
    end if;
end $$;

create or replace function tapebot.publish(
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
    waiting := tapebot.waiting(queue, whose, room);
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

create or replace function tapebot.send(
    chan text, whose text, key text, content text, slot_done text, files bytea[]
) returns void
language plpgsql as $$
begin
    if tapebot.reported(tapebot.queue_of(whose), whose, key) then
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
