-- What a search finds entries by is made behind them: no append waits for it. Whoever searches makes up for what is
-- missing first, so that a search misses nothing. Processes of the version before go on to send terms with what they
-- append; those count unless an earlier entry has none yet. A search of theirs misses what has none yet.

-- No append between the version that is read here and the functions that are replaced below.
lock table tapebot.tape in exclusive mode;

-- The last entry that a search finds.
alter table tapebot.indexed add column upto bigint not null default 0;
update tapebot.indexed set upto = tape.version from tapebot.tape where tape.id = indexed.tape;

alter function tapebot.put_documents(bigint, bigint, jsonb) rename to place_documents;
alter function tapebot.replace_documents(bigint, bigint[], jsonb) rename to replace_placed_documents;
alter function tapebot.drop_documents(bigint, bigint) rename to drop_placed_documents;

-- Nothing is made of the entries after an id now; or this. Places are given in the order of entries, so that it counts
-- only where nothing is missing before it. A tape's state begins with its first entries, from whichever id on.
create function tapebot.put_documents(of_tape bigint, after bigint, made jsonb) returns void
language plpgsql as $$
begin
    if made is null then
        return;
    end if;
    insert into tapebot.indexed (tape, upto) values (of_tape, after) on conflict do nothing;
    update tapebot.indexed set upto = after + jsonb_array_length(made) where tape = of_tape and upto = after;
    if found then
        perform tapebot.place_documents(of_tape, after, made);
    end if;
end $$;

-- Make up for what is missing behind an id, from the next one that there is on; false where it was made of entries that
-- are no more what they were, or by another.
create function tapebot.index_entries(
    of_tape bigint, seen_erasures int, behind bigint, after bigint, made jsonb
) returns boolean
language plpgsql as $$
begin
    -- An erasure takes this row, too, before its end: it sees what was put, or this sees the erasure.
    perform from tapebot.indexed where tape = of_tape and upto = behind for no key update;
    if not found then
        return false;
    end if;
    if seen_erasures is distinct from (select erasures from tapebot.tape where id = of_tape) then
        return false;
    end if;
    update tapebot.indexed set upto = after where tape = of_tape and upto < after;
    perform tapebot.put_documents(of_tape, after, made);
    return true;
end $$;

-- Of tombstones of what no search finds yet nothing is made now, either.
create function tapebot.replace_documents(of_tape bigint, ids bigint[], made jsonb) returns void
language plpgsql as $$
declare
    last bigint;
begin
    insert into tapebot.indexed (tape) values (of_tape) on conflict do nothing;
    select upto into last from tapebot.indexed where tape = of_tape for no key update;
    if last < any (ids) then
        select jsonb_agg(made -> (place - 1)::int order by place), array_agg(id order by place) into made, ids
            from unnest(ids) with ordinality as one (id, place) where id <= last;
    end if;
    if ids is not null then
        perform tapebot.replace_placed_documents(of_tape, ids, made);
    end if;
end $$;

create function tapebot.drop_documents(of_tape bigint, from_id bigint) returns void
language plpgsql as $$
begin
    update tapebot.indexed set upto = (select version from tapebot.tape where id = of_tape) where tape = of_tape;
    perform tapebot.drop_placed_documents(of_tape, from_id);
end $$;

-- Ids may be missing in what is restored.
create function tapebot.restore_entries(
    of_tape bigint, after bigint, kinds text[], names bytea[], bodies bytea[], terms jsonb
) returns void language plpgsql as $$
begin
    update tapebot.indexed set upto = after where tape = of_tape and upto < after;
    perform tapebot.put_entries(of_tape, after, kinds, names, bodies, terms);
end $$;

-- As before; the copy is found up to where its source is.
create or replace function tapebot.copy_entries(
    source bigint, target bigint, after bigint, last bigint, seen_live bigint
) returns void language plpgsql as $$
declare
    added text[];
begin
    insert into tapebot.indexed (tape) values (target) on conflict do nothing;
    with wanted as materialized (
        select exists (select from tapebot.tape where id = source and live = seen_live) as there
    ), copied as (
        insert into tapebot.entry (tape, id, kind, name, body)
        select target, one.id, one.kind, one.name, one.body
        from tapebot.entry as one
        where one.tape = source and one.id > after and one.id <= last and (select there from wanted)
        order by one.id
    ), found as (
        select * from tapebot.document
        where tape = source and entry > after and entry <= last and (select there from wanted)
    ), put as (
        insert into tapebot.document
            (tape, place, entry, said_at, kind, speaker, label, length, terms)
        select target, place, entry, said_at, kind, speaker, label, length, terms from found
        returning terms
    ), speakers as (
        insert into tapebot.speaker select target, id, told from tapebot.speaker
        where tape = source and id in (select speaker from found)
    ), labels as (
        insert into tapebot.label select target, id, told from tapebot.label
        where tape = source and id in (select label from found)
    ), state as (
        -- The turn that comes next has the place that it would have had there.
        update tapebot.indexed here set
            turns = greatest(here.turns, coalesce((select min(place) - 1 from tapebot.document
                where tape = source and entry > last and place < 4294967296), there.turns)),
            others = greatest(here.others, there.others),
            documents = here.documents + (select count(*) from found),
            upto = greatest(here.upto, least(last, there.upto))
        from tapebot.indexed there where here.tape = target and there.tape = source
    )
    select array_agg(terms) into added from put;
    if added is not null then
        perform tapebot.count_terms(target, added, 1);
    end if;
end $$;
