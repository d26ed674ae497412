-- What the tapes are searched by: their entries in pieces, each with the terms that Python made of it.
--
-- All of it is written under the lock of the tape's row, in the transaction that writes the entries, so a
-- search knows what was appended before it was asked. Texts stay out of the statistics that the server
-- samples, for these would outlive what is erased.

-- Looks up a tape and a term together: a common word costs what this tape has of it.
create extension if not exists btree_gin schema tapebot;

-- Places of a tape: its turns from 1, with a gap where one part of the talk ends; all else from 2^32.
create table tapebot.document (
    tape bigint not null,
    place bigint not null,
    entry bigint not null,
    said_at float8 not null,
    kind smallint not null,
    speaker int not null,
    label int not null,
    length int not null,
    terms text not null,
    primary key (tape, place)
) partition by hash (tape);

-- How many documents of a tape have a term.
create table tapebot.vocabulary (
    tape bigint not null,
    term text collate "C" not null,
    found int not null,
    primary key (tape, term)
) partition by hash (tape);

do $$
declare
    part text;
begin
    for number in 0..15 loop
        part := 'document_' || lpad(number::text, 2, '0');
        execute format('create table tapebot.%I partition of tapebot.document
            for values with (modulus 16, remainder %s)', part, number);
        -- A search reads all that waits to be sorted in, so that this is kept small.
        execute format('create index %I on tapebot.%I
            using gin (tape, string_to_array(terms, '' '')) with (gin_pending_list_limit = 256)',
            part || '_terms', part);
        execute format('alter index tapebot.%I alter column 2 set statistics 0', part || '_terms');
        execute format('create table tapebot.%I partition of tapebot.vocabulary
            for values with (modulus 16, remainder %s) with (fillfactor = 80)',
            'vocabulary_' || lpad(number::text, 2, '0'), number);
    end loop;
end $$;

create index document_terms on tapebot.document using gin (tape, string_to_array(terms, ' '))
    with (gin_pending_list_limit = 256);
create index document_entry on tapebot.document (tape, entry);
create index document_label on tapebot.document (tape, label, entry);
alter table tapebot.document alter column terms set statistics 0;
alter table tapebot.vocabulary alter column term set statistics 0;

-- Who speaks on a tape, and what is written on its entries, by numbers from 1; 0 is nobody, and nothing.
create table tapebot.speaker (
    tape bigint not null,
    id int not null,
    told bytea not null,
    primary key (tape, id)
);
create table tapebot.label (
    tape bigint not null,
    id int not null,
    told bytea not null,
    primary key (tape, id)
);
create unique index speaker_told on tapebot.speaker (tape, sha256(told));
create unique index label_told on tapebot.label (tape, sha256(told));
alter table tapebot.speaker alter column told set statistics 0;
alter table tapebot.label alter column told set statistics 0;

-- The highest places given on a tape, and how many documents it has.
create table tapebot.indexed (
    tape bigint primary key,
    turns bigint not null default 0,
    others bigint not null default 0,
    documents bigint not null default 0
) with (fillfactor = 50);

-- Takes note of who speaks and what is written in what comes, so that each has a number.
create function tapebot.meet(of_tape bigint, made jsonb) returns void
language plpgsql as $$
begin
    insert into tapebot.speaker (tape, id, told)
        select of_tape, row_number() over () + coalesce(
            (select max(id) from tapebot.speaker where tape = of_tape), 0), told
        from (select distinct decode(said, 'hex') as told
              from jsonb_path_query(made, '$[*].documents[*].speaker') as one (value),
                  lateral (select value #>> '{}' as said)) as named
        where not exists (select from tapebot.speaker known where known.tape = of_tape
            and sha256(known.told) = sha256(named.told));
    insert into tapebot.label (tape, id, told)
        select of_tape, row_number() over () + coalesce(
            (select max(id) from tapebot.label where tape = of_tape), 0), told
        from (select distinct decode(said, 'hex') as told
              from jsonb_path_query(made, '$[*].documents[*].label') as one (value),
                  lateral (select value #>> '{}' as said)) as named
        where not exists (select from tapebot.label known where known.tape = of_tape
            and sha256(known.told) = sha256(named.told));
end $$;

create function tapebot.speaker_of(of_tape bigint, said text) returns int
language sql stable as $$
    select case when said is null then 0 else (select id from tapebot.speaker
        where tape = of_tape and sha256(told) = sha256(decode(said, 'hex'))) end;
$$;

create function tapebot.label_of(of_tape bigint, said text) returns int
language sql stable as $$
    select case when said is null then 0 else (select id from tapebot.label
        where tape = of_tape and sha256(told) = sha256(decode(said, 'hex'))) end;
$$;

-- Counts, up or down, the terms of documents that come or go; of a term that is gone nothing stays.
create function tapebot.count_terms(of_tape bigint, texts text[], sign int) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    if sign > 0 then
        insert into tapebot.vocabulary as known (tape, term, found)
            select of_tape, term, count(*)
            from unnest(texts) as one (terms),
                lateral (select distinct unnest(string_to_array(terms, ' ')) as term) as each
            group by term
        on conflict (tape, term) do update set found = known.found + excluded.found;
        return;
    end if;
    update tapebot.vocabulary known set found = known.found - gone.found
        from (
            select term, count(*) as found
            from unnest(texts) as one (terms),
                lateral (select distinct unnest(string_to_array(terms, ' ')) as term) as each
            group by term
        ) as gone
        where known.tape = of_tape and known.term = gone.term collate "C";
    delete from tapebot.vocabulary where tape = of_tape and found <= 0;
end $$;

-- Forgets who speaks no more, and what is written on nothing any more.
create function tapebot.forget_unused(of_tape bigint) returns void
language sql as $$
    delete from tapebot.speaker where tape = of_tape
        and id not in (select speaker from tapebot.document where tape = of_tape);
    delete from tapebot.label where tape = of_tape
        and id not in (select label from tapebot.document where tape = of_tape);
$$;

-- Indexes entries with the ids after `after`, one element for each: null, or its `documents`, and `gap` where
-- talk before it is no neighbour of talk behind it: 0, or the id that it points at, which then counts where
-- it is no earlier one.
create or replace function tapebot.put_documents(of_tape bigint, after bigint, made jsonb) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    added text[];
    gaps bigint;
    spoken bigint;
    beside bigint;
    began tapebot.indexed;
begin
    if made is null then
        return;
    end if;
    insert into tapebot.indexed (tape) values (of_tape) on conflict do nothing;
    select * into began from tapebot.indexed where tape = of_tape;
    if jsonb_path_exists(made, '$[*].documents[*] ? (exists(@.speaker) || exists(@.label))') then
        perform tapebot.meet(of_tape, made);
    end if;
    select count(*) into gaps from jsonb_array_elements(made) with ordinality as one (element, number)
        where (element ->> 'gap')::bigint = 0 or (element ->> 'gap')::bigint >= after + number;
    with entry as (
        select number, element -> 'documents' as documents,
            3 * count(*) filter (where (element ->> 'gap')::bigint = 0
                or (element ->> 'gap')::bigint >= after + number) over (order by number) as gap
        from jsonb_array_elements(made) with ordinality as one (element, number)
        where jsonb_typeof(element) = 'object'
    ), piece as (
        select entry.number, entry.gap, document, (document ->> 'spoken')::boolean as spoken,
            count(*) filter (where (document ->> 'spoken')::boolean) over before_it as turns,
            count(*) filter (where not (document ->> 'spoken')::boolean) over before_it as others
        from entry, jsonb_array_elements(entry.documents) with ordinality as one (document, place)
        window before_it as (order by entry.number, one.place)
    ), put as (
        insert into tapebot.document
            (tape, place, entry, said_at, kind, speaker, label, length, terms)
        select of_tape,
            case when piece.spoken then began.turns + gap + turns
                else 4294967296 + began.others + others end,
            after + number, (document ->> 'said_at')::float8, (document ->> 'kind')::smallint,
            tapebot.speaker_of(of_tape, document ->> 'speaker'),
            tapebot.label_of(of_tape, document ->> 'label'),
            (document ->> 'length')::int, document ->> 'terms'
        from piece
        returning place, terms
    )
    select array_agg(terms), count(*) filter (where place < 4294967296),
        count(*) filter (where place >= 4294967296)
        into added, spoken, beside from put;
    if gaps + spoken + beside > 0 then
        update tapebot.indexed set turns = began.turns + 3 * gaps + spoken,
            others = began.others + beside, documents = began.documents + spoken + beside
            where tape = of_tape;
    end if;
    if added is not null then
        perform tapebot.count_terms(of_tape, added, 1);
    end if;
end $$;

-- Puts what is found of tombstones in the place of what was found of the entries of these ids. An entry
-- keeps its places, so that those beside it stay its neighbours.
create or replace function tapebot.replace_documents(of_tape bigint, ids bigint[], made jsonb)
returns void language plpgsql as $$
#variable_conflict use_column
declare
    held jsonb;
    gone text[];
    added text[];
begin
    insert into tapebot.indexed (tape) values (of_tape) on conflict do nothing;
    with dropped as (
        delete from tapebot.document where tape = of_tape and entry = any (ids)
        returning entry, place, terms
    )
    select array_agg(terms), jsonb_agg(jsonb_build_array(entry, place)) into gone, held from dropped;
    if made is not null then
        perform tapebot.meet(of_tape, made);
    end if;
    with was as (
        select (one ->> 0)::bigint as entry, (one ->> 1)::bigint as place,
            (one ->> 1)::bigint < 4294967296 as spoken,
            row_number() over (partition by one ->> 0, (one ->> 1)::bigint < 4294967296
                order by (one ->> 1)::bigint) as nth
        from jsonb_array_elements(held) as each (one)
    ), piece as (
        select ids[number] as entry, document, (document ->> 'spoken')::boolean as spoken,
            row_number() over (partition by number, (document ->> 'spoken')::boolean
                order by place) as nth
        from jsonb_array_elements(made) with ordinality as one (element, number),
            jsonb_array_elements(
                case jsonb_typeof(element) when 'object' then element -> 'documents' end
            ) with ordinality as two (document, place)
    ), placed as (
        select piece.*, was.place,
            count(*) filter (where was.place is null) over (partition by piece.spoken
                order by piece.entry, piece.nth) as beyond
        from piece left join was using (entry, spoken, nth)
    ), put as (
        insert into tapebot.document
            (tape, place, entry, said_at, kind, speaker, label, length, terms)
        select of_tape, coalesce(placed.place,
                case when spoken then turns else 4294967296 + others end + beyond),
            entry, (document ->> 'said_at')::float8, (document ->> 'kind')::smallint,
            tapebot.speaker_of(of_tape, document ->> 'speaker'),
            tapebot.label_of(of_tape, document ->> 'label'),
            (document ->> 'length')::int, document ->> 'terms'
        from placed, (select * from tapebot.indexed where tape = of_tape) as state
        returning terms
    )
    select array_agg(terms) into added from put;
    perform tapebot.count_terms(of_tape, gone, -1);
    perform tapebot.count_terms(of_tape, added, 1);
    perform tapebot.forget_unused(of_tape);
    update tapebot.indexed set
        turns = greatest(turns, (select coalesce(max(place), 0) from tapebot.document
            where tape = of_tape and place < 4294967296)),
        others = greatest(others, (select coalesce(max(place) - 4294967296, 0) from tapebot.document
            where tape = of_tape and place >= 4294967296)),
        documents = documents + coalesce(cardinality(added), 0) - coalesce(cardinality(gone), 0)
        where tape = of_tape;
end $$;

-- Drops what is found of the entries from an id on. What comes later is no neighbour of what stays.
create or replace function tapebot.drop_documents(of_tape bigint, from_id bigint) returns void
language plpgsql as $$
declare
    gone text[];
begin
    with dropped as (
        delete from tapebot.document where tape = of_tape and entry >= from_id returning terms
    )
    select array_agg(terms) into gone from dropped;
    if gone is not null then
        perform tapebot.count_terms(of_tape, gone, -1);
        perform tapebot.forget_unused(of_tape);
        update tapebot.indexed set documents = documents - cardinality(gone) where tape = of_tape;
    end if;
end $$;

-- Copies entries to a fork, and gives it what is found of them in the same places. One statement copies, so
-- that it sees one moment of the source; nothing is copied where that was turned over.
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
        select target, one.id, one.kind, one.name, one.body from tapebot.entry as one
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
