-- A reset takes all of a tape, from whichever entry it is asked to: what was sealed before, too.

create or replace function tapebot.drop_entries(of_tape bigint, from_id bigint) returns void language plpgsql as $$
begin
    delete from tapebot.entry where tape = of_tape;
    delete from tapebot.segment where tape = of_tape;
    perform tapebot.drop_documents(of_tape, 1);
    -- Whoever keeps a state of it elsewhere begins anew.
    update tapebot.tape set erasures = erasures + 1 where id = of_tape;
end $$;
