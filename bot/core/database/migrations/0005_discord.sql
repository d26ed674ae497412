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
