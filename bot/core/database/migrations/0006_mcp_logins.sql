-- Logins at MCP servers, with their tokens, as JSON: one for the workspace.

create table tapebot.mcp_login (
    server text primary key,
    content bytea not null
);
