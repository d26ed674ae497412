-- The chain of digests through a tape, as bot/tape/chain.py describes it. An entry's link is the value of the link
-- before it, a salt, and its digest, 12 bytes each; a tombstone's has behind them the digest of what it replaced. Entries
-- from before the chain have none. Links are made here, so that processes of the version before make them, too.

alter table tapebot.entry add column link bytea, add column more int;
alter table tapebot.entry alter column link set statistics 0;

-- What the next link refers to.
create function tapebot.link_value(link bytea) returns bytea
    language sql immutable as $$ select substring(link from octet_length(link) - 11 for 12) $$;

create function tapebot.digest(
    before bytea, erased bytea, entry_id bigint, more int, body bytea
) returns bytea language sql immutable as $$
    -- What is covered of a body: all behind its id, without the brace that ends it.
    select substring(sha256(before || erased || convert_to(entry_id || ',' || more || ',', 'UTF8')
        || substring(body from 9 for octet_length(body) - 9)) for 12)
$$;

create function tapebot.salt() returns bytea
    language sql volatile as $$ select substring(sha256(uuid_send(gen_random_uuid())) for 12) $$;

create function tapebot.next_link(
    link bytea, start bytea, entry_id bigint, more int, body bytea
) returns bytea language plpgsql volatile as $$
declare
    before bytea = coalesce(tapebot.link_value(link), start) || tapebot.salt();
begin
    return before || tapebot.digest(before, '', entry_id, more, body);
end $$;

-- Over rows in their order: each one's link.
create aggregate tapebot.chain(bytea, bigint, int, bytea) (
    sfunc = tapebot.next_link, stype = bytea
);

create function tapebot.tombstone_link(
    replaced bytea, entry_id bigint, more int, body bytea
) returns bytea language plpgsql volatile as $$
declare
    before bytea = substring(replaced for 12) || tapebot.salt();
    erased bytea = tapebot.link_value(replaced);
begin
    return before || tapebot.digest(before, erased, entry_id, more, body) || erased;
end $$;

-- The value of a tape's last link up to an entry.
create function tapebot.chain_end(of_tape bigint, last bigint) returns bytea
    language sql volatile as $$
    select coalesce(tapebot.link_value((
        select link from tapebot.entry where tape = of_tape and id <= last order by id desc limit 1
    )), '\x000000000000000000000000'::bytea)
$$;

create or replace function tapebot.put_entries(
    of_tape bigint, after bigint, kinds text[], names bytea[], bodies bytea[], terms jsonb
) returns void language plpgsql as $$
declare
    start bytea = tapebot.chain_end(of_tape, after);
    count int = cardinality(kinds);
begin
    insert into tapebot.entry (tape, id, kind, name, body, more, link)
        select of_tape, after + place, kind, name, body, count - place,
            tapebot.chain(start, after + place, (count - place)::int, body) over (order by place)
        from unnest(kinds, names, bodies) with ordinality as fresh (kind, name, body, place);
    perform tapebot.put_documents(of_tape, after, terms);
end $$;

-- The same for entries that have their links, or are from before the chain.
create function tapebot.restore_entries(
    of_tape bigint, after bigint, kinds text[], names bytea[], bodies bytea[], terms jsonb,
    mores int[], links bytea[]
) returns void language plpgsql as $$
begin
    insert into tapebot.entry (tape, id, kind, name, body, more, link)
        select of_tape, after + place, kind, name, body, more, link
        from unnest(kinds, names, bodies, mores, links)
            with ordinality as fresh (kind, name, body, more, link, place);
    perform tapebot.put_documents(of_tape, after, terms);
end $$;

create or replace function tapebot.replace_entries(
    of_tape bigint, ids bigint[], names bytea[], bodies bytea[], terms jsonb
) returns void language plpgsql as $$
begin
    update tapebot.entry set name = fresh.name, body = fresh.body,
            link = case when link is not null
                then tapebot.tombstone_link(link, entry.id, more, fresh.body) end
        from unnest(ids, names, bodies) as fresh (id, name, body)
        where entry.tape = of_tape and entry.id = fresh.id;
    perform tapebot.replace_documents(of_tape, ids, terms);
end $$;

-- As before; each copy is an append of its own in the fork's chain.
create or replace function tapebot.copy_entries(
    source bigint, target bigint, after bigint, last bigint, seen_live bigint
) returns void language plpgsql as $$
declare
    added text[];
    start bytea = tapebot.chain_end(target, after);
begin
    insert into tapebot.indexed (tape) values (target) on conflict do nothing;
    with wanted as materialized (
        select exists (select from tapebot.tape where id = source and live = seen_live) as there
    ), copied as (
        insert into tapebot.entry (tape, id, kind, name, body, more, link)
        select target, one.id, one.kind, one.name, one.body, 0,
            tapebot.chain(start, one.id, 0, one.body) over (order by one.id)
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
            documents = here.documents + (select count(*) from found)
        from tapebot.indexed there where here.tape = target and there.tape = source
    )
    select array_agg(terms) into added from put;
    if added is not null then
        perform tapebot.count_terms(target, added, 1);
    end if;
end $$;
