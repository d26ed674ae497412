-- All tables and functions of tapebot in PostgreSQL. Names are qualified: nothing depends on a search path.

create schema tapebot;

-- The version of these tables, and which text made them; bot.core.database.schema compares both.
create table tapebot.about (
    version int not null,
    digest text not null
);

-- Wake-ups.

-- When a topic was last told of: notifications take a lock of the whole server, so that they are few.
create unlogged table tapebot.wake (
    topic text primary key,
    told timestamptz not null default '-infinity'
);

-- The channel of NOTIFY for a topic; bot.core.database.wakeups has the same rule. What one process or one kind of
-- channel waits for has a line of its own, so that no other process wakes up for it.
create function tapebot.line_of(about text) returns text
language sql immutable as $$
    select case when about like 'outbound:%' or about like 'inbound@%'
        then 'tapebot.' || left(encode(sha256(convert_to(about, 'UTF8')), 'hex'), 32)
        else 'tapebot' end
$$;

create function tapebot.tell(about text, pause interval default '20 milliseconds') returns void
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

-- Tapes. Names and texts are bytea, UTF-8 with lone surrogates let through: a text of PostgreSQL holds neither these
-- nor the character NUL, and bytes are sorted as tapebot sorts names.

create table tapebot.tape (
    id bigint generated always as identity primary key,
    workspace bytea not null,
    name bytea not null,
    title bytea,
    -- Ids of the last entry, and of the header of what is live.
    version bigint not null,
    live bigint not null,
    -- Grows with every erasure and reset.
    erasures int not null default 0,
    -- Until when somebody wants to be told of new entries.
    followed timestamptz not null default '-infinity',
    made_by uuid not null,
    unique (workspace, name)
) with (fillfactor = 50);

-- The line is the entry's as a file has it, with an id that means nothing.
create table tapebot.entry (
    tape bigint not null,
    id bigint not null,
    kind text not null,
    line bytea not null,
    primary key (tape, id)
) partition by hash (tape);

do $$ begin
    for number in 0..15 loop
        execute format('create table tapebot.entry_%s partition of tapebot.entry for values with (modulus 16, remainder %s)',
            lpad(number::text, 2, '0'), number);
    end loop;
end $$;

-- Samples of values that the planner keeps would outlive what is erased.
alter table tapebot.entry alter column line set statistics 0;
alter table tapebot.tape alter column title set statistics 0;

create index entry_anchor on tapebot.entry (tape, id) where kind = 'anchor';

create table tapebot.segment (
    tape bigint not null references tapebot.tape,
    first_id bigint not null,
    last_id bigint not null,
    name text not null unique,
    primary key (tape, first_id)
);

-- What was done under which key: asked again, after an answer that was lost, it is not done again.
create table tapebot.tape_write (
    tape bigint not null,
    key uuid not null,
    first_id bigint not null,
    last_id bigint not null,
    done_at timestamptz not null default now(),
    primary key (tape, key)
);
create index tape_write_done_at on tapebot.tape_write using brin (done_at);

-- Which entries a tape's nth erasure replaced, for whoever keeps something of them elsewhere; null for all, by a reset.
create table tapebot.rewrite (
    tape bigint not null,
    number int not null,
    ids bigint[],
    primary key (tape, number)
);

-- Partitions that still hold versions of rows that were erased.
create table tapebot.vacuum_wanted (
    part text primary key,
    asked_at timestamptz not null
);

create function tapebot.put_entries(of_tape bigint, after bigint, kinds text[], lines bytea[]) returns void
language plpgsql as $$
begin
    insert into tapebot.entry (tape, id, kind, line)
        select of_tape, after + fresh.place, fresh.kind, fresh.line
        from unnest(kinds, lines) with ordinality as fresh (kind, line, place);
end $$;

-- A tape's entries were replaced or dropped. The old versions of its rows are there until their table is cleaned; the
-- entry, which still stands, says which one it is.
create function tapebot.note_rewrite(of_tape bigint, changed bigint[], entry_id bigint) returns void
language plpgsql as $$
begin
    insert into tapebot.rewrite (tape, number, ids)
        select id, erasures + 1, changed from tapebot.tape where id = of_tape;
    update tapebot.tape set erasures = erasures + 1 where id = of_tape;
    insert into tapebot.vacuum_wanted (part, asked_at)
        select right(part.relname, 2), clock_timestamp() from pg_catalog.pg_class as part
        where part.oid = (select tableoid from tapebot.entry where tape = of_tape and id = entry_id)
        on conflict (part) do update set asked_at = excluded.asked_at;
    perform tapebot.tell('erased', '0');
end $$;

-- The outcomes of what follows: done; missing (no such tape); conflict (not at the version that was expected);
-- moved (turned over or erased from since the caller looked: look again); exists.

create function tapebot.append(
    of_workspace bytea, tape_name bytea, expected bigint, once uuid, kinds text[], lines bytea[],
    out outcome text, out last bigint
) language plpgsql as $$
declare
    held record;
    count int = cardinality(kinds);
begin
    select id, version, followed > clock_timestamp() as heard into held from tapebot.tape
        where workspace = of_workspace and name = tape_name for no key update;
    if not found then
        outcome = 'missing';
        return;
    end if;
    select last_id into last from tapebot.tape_write where tape = held.id and key = once;
    if found then
        outcome = 'done';
        return;
    end if;
    last = held.version;
    if expected <> held.version then
        outcome = 'conflict';
        return;
    end if;
    outcome = 'done';
    if count = 0 then
        return;
    end if;
    last = held.version + count;
    perform tapebot.put_entries(held.id, held.version, kinds, lines);
    insert into tapebot.tape_write (tape, key, first_id, last_id)
        values (held.id, once, held.version + 1, last);
    update tapebot.tape set version = last where id = held.id;
    if held.heard then
        perform tapebot.tell('tape/' || held.id, '0');
    end if;
end $$;

create function tapebot.create_tape(
    of_workspace bytea, tape_name bytea, tape_title bytea, once uuid, kinds text[], lines bytea[]
) returns boolean language plpgsql as $$
declare
    made bigint;
begin
    -- Nearly always it is there, and an insert that comes to nothing would use up a number.
    if not exists (select from tapebot.tape where workspace = of_workspace and name = tape_name) then
        insert into tapebot.tape (workspace, name, title, version, live, made_by)
            values (of_workspace, tape_name, tape_title, 1, 1, once)
            on conflict do nothing returning id into made;
        if made is not null then
            perform tapebot.put_entries(made, 0, kinds, lines);
        end if;
    end if;
    return (select made_by = once from tapebot.tape
        where workspace = of_workspace and name = tape_name);
end $$;

-- Archive and reset: what is live is sealed, or all is dropped, and a new part begins. The caller holds the tape's row:
-- the new header says what it found there.
create function tapebot.turn_over(
    of_workspace bytea, tape_name bytea, expected bigint, once uuid,
    segment_name text, new_title bytea, kinds text[], lines bytea[],
    out outcome text, out first bigint, out last bigint
) language plpgsql as $$
declare
    held record;
begin
    select id, version, live, followed > clock_timestamp() as heard into held from tapebot.tape
        where workspace = of_workspace and name = tape_name for no key update;
    if not found then
        outcome = 'missing';
        return;
    end if;
    select first_id, last_id into first, last from tapebot.tape_write
        where tape = held.id and key = once;
    if found then
        outcome = 'done';
        return;
    end if;
    first = held.live;
    last = held.version;
    if expected <> held.version then
        outcome = 'conflict';
        return;
    end if;
    if segment_name is null then
        perform tapebot.note_rewrite(held.id, null, held.live);
        delete from tapebot.entry where tape = held.id;
        delete from tapebot.segment where tape = held.id;
    else
        insert into tapebot.segment (tape, first_id, last_id, name)
            values (held.id, held.live, held.version, segment_name);
    end if;
    perform tapebot.put_entries(held.id, held.version, kinds, lines);
    insert into tapebot.tape_write (tape, key, first_id, last_id) values (held.id, once, first, last);
    update tapebot.tape set title = new_title, live = held.version + 1,
        version = held.version + cardinality(kinds) where id = held.id;
    if held.heard then
        perform tapebot.tell('tape/' || held.id, '0');
    end if;
    outcome = 'done';
end $$;

create function tapebot.fork(
    of_workspace bytea, parent_name bytea, child_name bytea, child_title bytea, seen_live bigint,
    head_id bigint, last bigint, once uuid, kinds text[], lines bytea[]
) returns text language plpgsql as $$
declare
    parent bigint;
    child bigint;
begin
    select id into parent from tapebot.tape where workspace = of_workspace and name = parent_name;
    if not found then
        return 'missing';
    end if;
    insert into tapebot.tape (workspace, name, title, version, live, made_by)
        values (of_workspace, child_name, child_title, greatest(head_id, last), head_id, once)
        on conflict do nothing returning id into child;
    if child is null then
        return case when exists (select from tapebot.tape
            where workspace = of_workspace and name = child_name and made_by = once)
            then 'done' else 'exists' end;
    end if;
    perform tapebot.put_entries(child, head_id - 1, kinds, lines);
    -- One statement, so that it sees one moment of the parent; nothing is copied where that was turned over.
    insert into tapebot.entry (tape, id, kind, line)
        select child, one.id, one.kind, one.line from tapebot.entry as one
        where one.tape = parent and one.id > head_id and one.id <= last
            and exists (select from tapebot.tape where tape.id = parent and tape.live = seen_live)
        order by one.id;
    if not exists (select from tapebot.entry where tape = child and id = greatest(head_id, last)) then
        delete from tapebot.entry where tape = child;
        delete from tapebot.tape where id = child;
        return 'moved';
    end if;
    return 'done';
end $$;

create function tapebot.erase(
    of_workspace bytea, tape_name bytea, seen_live bigint, seen_erasures int, once uuid,
    changed bigint[], lines bytea[], retitle boolean, new_title bytea
) returns text language plpgsql as $$
declare
    held record;
begin
    select id, live, erasures into held from tapebot.tape
        where workspace = of_workspace and name = tape_name for no key update;
    if not found then
        return 'missing';
    end if;
    if exists (select from tapebot.tape_write where tape = held.id and key = once) then
        return 'done';
    end if;
    if seen_live <> held.live or seen_erasures <> held.erasures then
        return 'moved';
    end if;
    update tapebot.entry set line = fresh.line from unnest(changed, lines) as fresh (id, line)
        where entry.tape = held.id and entry.id = fresh.id;
    insert into tapebot.tape_write (tape, key, first_id, last_id)
        select held.id, once, min(id), max(id) from unnest(changed) as erased (id);
    update tapebot.tape set title = new_title where id = held.id and retitle;
    perform tapebot.note_rewrite(held.id, changed, changed[1]);
    return 'done';
end $$;

-- The message bus. The lease on a session's first row, its head, is the hold of the session; its token is the head's
-- id and how often it was read. What lies behind the head is read by the holder alone. Kinds of rows:
--   in      a message from a person           report  a channel's word on an answer
--   done    was the head, and is done with: only the hold's token, empty of words
--   hold    only a hold's token from its beginning
create table tapebot.inbound (
    id bigint generated always as identity primary key,
    session text not null,
    kind text not null,
    body text,
    -- The answer that a report ends.
    answer text,
    -- How often a holder took it, and how often one gave it back alive.
    reads int not null default 0,
    returned int not null default 0,
    -- Until then a head is held, and what is behind one is not looked at by whoever looks for free sessions.
    free_at timestamptz not null,
    holder text,
    -- The call that holds the session without working it, and the one that asks the holder to let go.
    held_by text,
    wanted_by text,
    queued_at timestamptz not null default clock_timestamp()
    -- Rows live for seconds: without this the index on free_at fills with dead ones faster than they are swept.
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
create index inbound_session on tapebot.inbound (session, id);
create index inbound_free_at on tapebot.inbound (free_at);

-- Messages that nobody could work; without words once something was erased.
create table tapebot.dead_letter (
    id bigint primary key,
    session text not null,
    body text,
    reads int not null,
    buried_at timestamptz not null default now()
);

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

-- Samples that the planner keeps would outlive the words of these, too.
alter table tapebot.inbound alter column body set statistics 0;
alter table tapebot.dead_letter alter column body set statistics 0;
alter table tapebot.outbox alter column body set statistics 0;
alter table tapebot.outfile alter column content set statistics 0;
alter table tapebot.live alter column body set statistics 0;

-- All that changes which row is a session's head happens under its lock, and ids are given under it: so the order
-- of ids is that of commits.
create function tapebot.lock_session(whose text) returns void
language sql as $$ select pg_advisory_xact_lock(hashtextextended(whose, 0)); $$;

-- What runs for every message is planned once for each connection. The table may be empty then and long later, so no
-- plan may read all of it, and no statement joins it: rows are looked up one by one (offset 0 keeps it so), or by an
-- array of ids.

-- Put a row into a session, whose lock is held, and wake who will read it: the holder, or whoever looks for work.
-- Nobody waits for a report.
create function tapebot.enqueue(whose text, what text, content text, ends text default null) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    head record;
begin
    select id, free_at > clock_timestamp() as held, holder into head
        from tapebot.inbound where session = whose order by id limit 1;
    insert into tapebot.inbound (session, kind, body, answer, free_at) values (whose, what, content, ends,
        clock_timestamp() + case when head.id is null then interval '0' else interval '1 hour' end);
    if head.held and head.holder is not null then
        if what <> 'report' then
            perform tapebot.tell('inbound@' || head.holder, '5 milliseconds');
        end if;
    else
        perform tapebot.tell('inbound');
    end if;
end $$;

-- The head went: whatever is next in the session is seen at once. The session's lock is held.
create function tapebot.promote(whose text) returns void
language plpgsql as $$
begin
    update tapebot.inbound set free_at = clock_timestamp()
        where id = (select id from tapebot.inbound where session = whose order by id limit 1);
    if found then
        perform tapebot.tell('inbound', '0');
    end if;
end $$;

-- Accept a message: -1. A duplicate: -2. The session is full: how many wait. Without a shard the session keeps its own.
create function tapebot.publish(
    whose text, platform_id text, asked uuid, content text, room int, from_shard int, of_shards int
) returns int
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    before uuid;
    waiting int;
begin
    perform tapebot.lock_session(whose);
    select call into before from tapebot.seen where session = whose and id = platform_id;
    if before is not null then
        return case when before = asked then -1 else -2 end;
    end if;
    select count(*) into waiting from (
        select from tapebot.inbound where session = whose and kind = 'in' limit room) as found;
    if waiting >= room then
        return waiting;
    end if;
    insert into tapebot.seen (session, id, call) values (whose, platform_id, asked);
    if from_shard is not null then
        insert into tapebot.route (session, shard, shards) values (whose, from_shard, of_shards)
            on conflict (session) do update set shard = excluded.shard, shards = excluded.shards
            where (route.shard, route.shards) is distinct from (excluded.shard, excluded.shards);
    end if;
    perform tapebot.enqueue(whose, 'in', content);
    return -1;
end $$;

-- What a process that holds sessions has to know, in one round trip: which of its holds are lost or asked for,
-- what arrived in them, and up to most sessions that were free and are its own from now on.
create function tapebot.poll(
    lease float, me text, most int,
    held_session text[], held_token bigint[], held_reads int[],
    after_in bigint[], after_report bigint[], room int[], busy boolean[]
) returns table (
    what text, n bigint, id bigint, kind text, reads int, returned int, session text, body text
)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    hold record;
    found record;
begin
    -- Most holds have no news: a plan that only finds those that have is cheap to run.
    for hold in
        select h.*, t.id is null as lost, t.wanted_by, i.id is not null as asked
        from unnest(held_session, held_token, held_reads, after_in, after_report, room, busy)
            with ordinality as h (whose, token, times, after_in, after_report, room, busy, n)
        left join lateral (
            select q.id, q.wanted_by from tapebot.inbound q where q.id = h.token and q.reads = h.times offset 0
        ) t on true
        left join lateral (
            select q.id from tapebot.inbound q
            where q.session = h.whose and q.kind = 'in' and q.id > h.after_in and h.room > 0 limit 1
        ) i on true
        left join lateral (
            select q.id from tapebot.inbound q
            where q.session = h.whose and q.kind = 'report' and q.id > h.after_report limit 1
        ) r on true
        where t.id is null or t.wanted_by is not null or i.id is not null or r.id is not null
    loop
        if hold.lost then
            return query select 'lost', hold.n, null::bigint, null, null::int, null::int, null, null;
            continue;
        end if;
        if hold.wanted_by is not null then
            return query select 'wanted', hold.n, null::bigint, null, null::int, null::int, null, hold.wanted_by;
        end if;
        select null::bigint[] as ids into found;
        if hold.asked then
            select array_agg(m.id) as ids, min(m.id) as first, min(m.id) filter (where m.deaths >= 2) as suspect
                into found
            from (
                select q.id, q.reads - q.returned as deaths from tapebot.inbound q
                where q.session = hold.whose and q.kind = 'in' and q.id > hold.after_in
                order by q.id limit hold.room
            ) m;
            -- What may be what kills its holders is worked alone.
            if found.suspect = found.first then
                found.ids := case when hold.busy then '{}' else array[found.first] end;
            elsif found.suspect is not null then
                found.ids := array(select one from unnest(found.ids) as one where one < found.suspect);
            end if;
        end if;
        return query
            with marked as (
                update tapebot.inbound q set reads = q.reads + 1 where q.id = any (found.ids)
                returning q.id, q.kind, q.reads, q.returned, q.session, q.body
            ), reports as (
                select q.id, q.kind, q.reads, q.returned, q.session, q.body from tapebot.inbound q
                where q.session = hold.whose and q.kind = 'report' and q.id > hold.after_report
                order by q.id limit 32
            )
            select 'more', hold.n, m.* from (select * from marked union all select * from reports) as m order by m.id;
    end loop;
    -- Nearly always nothing is free, or nobody asks for it.
    if most > 0 and exists (select from tapebot.inbound where free_at <= statement_timestamp()) then
        return query
            with free as (
                select m.id from tapebot.inbound m
                where m.free_at <= statement_timestamp() and m.id = (
                    select f.id from tapebot.inbound f where f.session = m.session order by f.id limit 1
                )
                order by m.free_at limit most for update of m skip locked
            )
            update tapebot.inbound m
            set free_at = clock_timestamp() + make_interval(secs => lease), reads = m.reads + 1, holder = me,
                held_by = null, wanted_by = null
            where m.id = any (array(select id from free))
            returning 'head', null::bigint, m.id, m.kind, m.reads, m.returned, m.session, m.body;
    end if;
end $$;

-- Renew holds; those whose token does not come back are lost.
create function tapebot.renew(lease float, held_token bigint[], held_reads int[]) returns setof bigint
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return query
        update tapebot.inbound set free_at = clock_timestamp() + make_interval(secs => lease)
        where id = any (held_token)
            and (id, reads) in (select * from unnest(held_token, held_reads))
        returning id;
end $$;

-- Rows are done with; false where the hold is lost, and nothing was done.
create function tapebot.done(token bigint, held_reads int, ids bigint[]) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    perform from tapebot.inbound where id = token and reads = held_reads for no key update;
    if not found then
        return false;
    end if;
    if ids <> array[token] then
        delete from tapebot.inbound where id = any (ids) and id <> token;
    end if;
    if token = any (ids) then
        update tapebot.inbound set kind = 'done', body = null, answer = null where id = token;
    end if;
    return true;
end $$;

-- End a hold. What was worked on counts as returned, what was only fetched as never read.
create function tapebot.release(
    whose text, token bigint, held_reads int, gone bigint[], worked bigint[], fetched bigint[], pause float
) returns void
language plpgsql as $$
declare
    what text;
begin
    perform tapebot.lock_session(whose);
    -- Asked again after it was done, or too late: the lease has ended.
    select kind into what from tapebot.inbound
        where id = token and reads = held_reads and holder is not null and free_at > clock_timestamp() for update;
    if what is null then
        return;
    end if;
    delete from tapebot.inbound where id = any (gone) and id <> token;
    update tapebot.inbound set reads = reads - 1 where id = any (fetched) and id <> token;
    update tapebot.inbound set returned = returned + 1 where id = any (worked || token);
    if what in ('done', 'hold') or token = any (gone) then
        delete from tapebot.inbound where id = token;
        perform tapebot.promote(whose);
    else
        update tapebot.inbound set free_at = clock_timestamp() + make_interval(secs => pause), holder = null
            where id = token;
        if pause = 0 then
            perform tapebot.tell('inbound', '0');
        end if;
    end if;
end $$;

-- Hold a session without working it, where it is free; else its holder is asked to let go. The token is null then.
create function tapebot.hold(whose text, asked text, lease float, who text)
returns table (token bigint, times int, by_whom text)
language plpgsql as $$
declare
    head tapebot.inbound;
begin
    perform tapebot.lock_session(whose);
    select * into head from tapebot.inbound where session = whose order by id limit 1 for update;
    if head.id is null then
        insert into tapebot.inbound (session, kind, free_at) values (whose, 'hold', clock_timestamp())
            returning * into head;
    elsif head.free_at > clock_timestamp() and head.held_by is distinct from asked then
        update tapebot.inbound set wanted_by = asked where id = head.id;
        perform tapebot.tell(coalesce('inbound@' || head.holder, 'inbound'), '0');
        return query select null::bigint, null::int, head.holder;
        return;
    end if;
    return query
        update tapebot.inbound
        set free_at = clock_timestamp() + make_interval(secs => lease), reads = reads + 1, holder = who,
            held_by = asked, wanted_by = null
        where id = head.id returning id, reads, holder;
end $$;

-- Set aside a message that nobody can work; false where the hold is lost.
create function tapebot.bury(whose text, token bigint, held_reads int, buried bigint) returns boolean
language plpgsql as $$
begin
    perform tapebot.lock_session(whose);
    perform from tapebot.inbound where id = token and reads = held_reads for no key update;
    if not found then
        return false;
    end if;
    with gone as (delete from tapebot.inbound where id = buried returning *)
        insert into tapebot.dead_letter (id, session, body, reads) select id, session, body, reads from gone;
    if buried = token then
        perform tapebot.promote(whose);
    end if;
    return true;
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

-- Hand an answer to its channel, unless it is on its way, or its last report waits for the session that is told of it.
create function tapebot.send(
    chan text, whose text, told text, key text, content text, slot_done text, files bytea[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    insert into tapebot.outbox (channel, session, answer, body) values (chan, whose, key, content)
        on conflict (answer) do nothing;
    if not found then
        return;
    end if;
    -- Asked only now: the insert waits for a report that is about to end the answer.
    if exists (select from tapebot.inbound where session = told and kind = 'report' and answer = key) then
        delete from tapebot.outbox where answer = key;
    else
        delete from tapebot.live where session = whose and slot = slot_done;
        insert into tapebot.outfile (answer, number, content)
            select key, place, given from unnest(files) with ordinality as each (given, place) where given is not null;
        perform tapebot.tell('outbound:' || chan);
    end if;
end $$;

-- Give a channel's shard what it has to show, in order, without the answers that it says it has: an answer that was
-- given, and did not come to it, is given again.
create function tapebot.take(chan text, my_shard int, of_shards int, mark bigint, lease_name text, has bigint[], most int)
returns table (id bigint, kind text, answer text, body text)
language plpgsql as $$
#variable_conflict use_column
begin
    if mark > 0 and not exists (select from tapebot.lease where name = lease_name and epoch = mark) then
        return;
    end if;
    return query
        with due as (
            select o.id, 'answer', o.answer, o.body from tapebot.outbox o
            left join tapebot.route r on r.session = o.session and r.shards = of_shards
            where o.channel = chan and o.id <> all (has) and coalesce(r.shard, 0) = my_shard
            order by o.id limit most
        ),
        shown as (
            -- Whoever writes a newer one tells of it again; waiting for several of these could be a deadlock.
            delete from tapebot.live l where l.ctid = any (array(
                select l.ctid from tapebot.live l
                left join tapebot.route r on r.session = l.session and r.shards = of_shards
                where l.channel = chan and coalesce(r.shard, 0) = my_shard for update of l skip locked
            )) returning l.id, 'live', null::text, l.body
        )
        select * from (select * from due union all select * from shown) as due_now order by 1;
end $$;

-- A channel's word on an answer, to its session; the last one ends the answer.
create function tapebot.report(whose text, key text, final boolean, content text) returns void
language plpgsql as $$
begin
    perform tapebot.lock_session(whose);
    if final then
        delete from tapebot.outbox where answer = key;
    end if;
    perform tapebot.enqueue(whose, 'report', content, case when final then key end);
end $$;

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
alter table tapebot.blob alter column data set storage external, alter column data set statistics 0;

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
alter table tapebot.spool alter column raw set statistics 0;
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

-- What Discord's shards share: how far each channel was dealt with, and when the next may begin a session.

create table tapebot.discord_mark (
    bot text not null,
    place bigint not null,
    last bigint not null,
    server bigint,
    primary key (bot, place)
);

create table tapebot.turn (
    name text primary key,
    free timestamptz not null
);

-- Reserve the next turn of a name; return the seconds until it.
create function tapebot.turn_reserve(turn_name text, apart float) returns float
language sql as $$
    insert into tapebot.turn as turn (name, free)
        values (turn_name, clock_timestamp() + make_interval(secs => apart))
    on conflict (name) do update
        set free = greatest(turn.free, clock_timestamp()) + make_interval(secs => apart)
    returning greatest(0, extract(epoch from free - clock_timestamp())::float - apart);
$$;

-- Logins at MCP servers, with their tokens, as JSON: one for the workspace.

create table tapebot.mcp_login (
    server text primary key,
    content bytea not null
);
alter table tapebot.mcp_login alter column content set statistics 0;
