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
