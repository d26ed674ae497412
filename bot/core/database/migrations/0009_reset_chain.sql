-- What comes after a reset refers to the last entry that was dropped: the value of its link is kept with the tape.

alter table tapebot.tape add column chain_start bytea;

-- The value of a tape's last link up to an entry; where nothing is left up to it, of the last one dropped.
create or replace function tapebot.chain_end(of_tape bigint, last bigint) returns bytea
    language sql volatile as $$
    select coalesce(
        tapebot.link_value((
            select link from tapebot.entry where tape = of_tape and id <= last order by id desc limit 1
        )),
        (select chain_start from tapebot.tape where id = of_tape),
        '\x000000000000000000000000'::bytea)
$$;

create or replace function tapebot.drop_entries(of_tape bigint, from_id bigint) returns void language plpgsql as $$
declare
    dropped bytea = tapebot.chain_end(of_tape, 9223372036854775807);
begin
    delete from tapebot.entry where tape = of_tape;
    delete from tapebot.segment where tape = of_tape;
    perform tapebot.drop_documents(of_tape, 1);
    -- Whoever keeps a state of it elsewhere begins anew.
    update tapebot.tape set erasures = erasures + 1, chain_start = dropped where id = of_tape;
end $$;
