"""A model behind a proxy that the environment names."""

from __future__ import annotations

from model_rig import KEY, NAME, ask, make_model

from testkit.openai_server import Reply, ScriptedOpenAI


async def test_a_model_is_called_through_the_proxy_of_the_environment(monkeypatch):
    async with ScriptedOpenAI([Reply("Hello.")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        model = make_model("http", NAME, "http://model.invalid/v1")
        reply, _ = await ask(model, streamed=False)
        await model.aclose()
    assert reply.content == "Hello."


async def test_neither_a_netrc_file_nor_a_proxy_changes_a_call_on_the_own_machine(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password of-another-program\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with ScriptedOpenAI([Reply("Hello.")]) as server:
        model = make_model("http", NAME, server.base_url)
        reply, _ = await ask(model, streamed=False)
        await model.aclose()
    assert reply.content == "Hello."
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
