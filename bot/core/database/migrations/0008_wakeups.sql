-- Fewer wake-ups, each for whom it concerns. Processes of the version before call the same functions as ever. They do
-- not hear what is told on a line of its own, and find it with their next poll, a quarter of a second later at most.

-- The channel of NOTIFY for a topic; bot.core.database.wakeups has the same rule. What one process or one kind of
-- channel waits for has a line of its own, so that no other process wakes up for it.
create function tapebot.line_of(about text) returns text
language sql immutable as $$
    select case when about like 'outbound:%' or about like 'inbound:%@%'
        then 'tapebot.' || left(encode(sha256(convert_to(about, 'UTF8')), 'hex'), 32)
        else 'tapebot' end
$$;

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
        perform pg_notify(tapebot.line_of(about), about);
    end if;
end $$;

-- As before, but: the settings for plans are those of poll, which calls these; a report is not marked as read, for
-- only of messages it counts how many holders died with them; and a report wakes no holder, for nobody waits for it.
-- Its holder finds it with its next poll, many at once.
do $outer$
declare
    n int;
    count int := (select queues from tapebot.bus);
    branches text;
    whole text;
begin
    for n in 0 .. count - 1 loop
        execute replace($sql$
create or replace function tapebot.news_{n}(
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
    hold record;
    found record;
begin
    -- Most holds have no news: a plan that only finds those that have is cheap to run.
    for hold in
        select h.*, t.msg_id is null as lost, t.headers ->> 'letgo' as letgo, i.msg_id is not null as asked
        from unnest(held_queue, held_group, held_token, held_reads, after_in, after_report, room, busy)
            with ordinality as h (queue, whose, token, reads, after_in, after_report, room, busy, n)
        left join lateral (
            select q.msg_id, q.headers from pgmq.q_inbound_{n} q
            where q.headers ->> 'x-pgmq-group' = h.whose and q.msg_id = h.token and q.read_ct = h.reads offset 0
        ) t on true
        left join lateral (
            select q.msg_id from pgmq.q_inbound_{n} q
            where q.headers ->> 'x-pgmq-group' = h.whose and q.headers ->> 'kind' = 'in'
                and q.msg_id > h.after_in and h.room > 0 limit 1
        ) i on true
        left join lateral (
            select q.msg_id from pgmq.q_inbound_{n} q
            where q.headers ->> 'x-pgmq-group' = h.whose and q.headers ->> 'kind' = 'report'
                and q.msg_id > h.after_report limit 1
        ) r on true
        where h.queue = {n} and (
            t.msg_id is null or t.headers ? 'letgo' or i.msg_id is not null or r.msg_id is not null)
    loop
        if hold.lost then
            return query select 'lost', hold.n, {n}, null::bigint, null::int, null::text, null::jsonb;
            continue;
        end if;
        if hold.letgo is not null then
            return query select 'letgo', hold.n, {n}, null::bigint, null::int, hold.letgo, null::jsonb;
        end if;
        select null::bigint[] as ids into found;
        if hold.asked then
            select array_agg(m.msg_id) as ids, min(m.msg_id) as first,
                min(m.msg_id) filter (where m.deaths >= 2) as suspect into found
            from (
                select q.msg_id, q.read_ct - coalesce((q.headers ->> 'returned')::int, 0) as deaths
                from pgmq.q_inbound_{n} q
                where q.headers ->> 'x-pgmq-group' = hold.whose and q.headers ->> 'kind' = 'in'
                    and q.msg_id > hold.after_in
                order by q.msg_id limit hold.room
            ) m;
            -- What may be what kills its holders is worked alone.
            if found.suspect = found.first then
                found.ids := case when hold.busy then '{}' else array[found.first] end;
            elsif found.suspect is not null then
                found.ids := array(select id from unnest(found.ids) as id where id < found.suspect);
            end if;
        end if;
        return query
            with marked as (
                update pgmq.q_inbound_{n} q set read_ct = q.read_ct + 1, last_read_at = clock_timestamp()
                where q.msg_id = any (found.ids)
                returning q.msg_id, q.read_ct, q.message, q.headers
            ), reports as (
                select q.msg_id, q.read_ct, q.message, q.headers from pgmq.q_inbound_{n} q
                where q.headers ->> 'x-pgmq-group' = hold.whose and q.headers ->> 'kind' = 'report'
                    and q.msg_id > hold.after_report
                order by q.msg_id limit 32
            )
            select 'more', hold.n, {n}, m.msg_id, m.read_ct, m.message #>> '{}', m.headers
            from (select * from marked union all select * from reports) as m order by m.msg_id;
    end loop;
end $$;

alter function tapebot.head_{n}(text) reset all;
alter function tapebot.claim_{n}(float, text, boolean, int) reset all;

create or replace function tapebot.enqueue_{n}(whose text, what text, content text, more jsonb) returns void
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
    if not coalesce(head.heard, false) then
        perform tapebot.tell('inbound:{n}');
    elsif what <> 'report' then
        perform tapebot.tell('inbound:{n}@' || head.holder, '5 milliseconds');
    end if;
end $$;
$sql$, '{n}', n::text);
    end loop;

    select string_agg(format('when %1$s then return query select * from tapebot.news_%1$s(
            held_queue, held_group, held_token, held_reads, after_in, after_report, room, busy);', each), ' ')
        into branches from generate_series(0, count - 1) as each;
    whole := replace($sql$
create or replace function tapebot.poll(
    lease float, holder text, heard boolean, most int, queues int[],
    held_queue int[], held_group text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (what text, n bigint, queue int, msg_id bigint, read_ct int, body text, headers jsonb)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    here int;
    got int;
begin
    for here in select distinct each from unnest(held_queue) as each loop
        case here {news} end case;
    end loop;
    foreach here in array queues loop
        exit when most <= 0;
        got := 0;
        case here {claim} end case;
        most := most - got;
    end loop;
end $$;
$sql$, '{news}', branches);
    -- Nearly always nothing is free: to look here is cheaper than to call a function that looks.
    select string_agg(format('when %1$s then
            if exists (select from pgmq.q_inbound_%1$s where vt <= statement_timestamp()) then
                return query select * from tapebot.claim_%1$s(lease, holder, heard, most);
                get diagnostics got = row_count;
            end if;', each), ' ')
        into branches from generate_series(0, count - 1) as each;
    execute replace(whole, '{claim}', branches);
end $outer$;
