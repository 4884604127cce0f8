"""Python's httpx over HTTP/1.1 and HTTP/2. Arguments: the address of a plain server, and of one with TLS."""

import asyncio
import sys

import httpx

plain, tls = sys.argv[1:]


async def talk(base: str, **options) -> None:
    async with httpx.AsyncClient(base_url=base, verify=False, timeout=30, **options) as client:
        assert (await client.get("/")).text == "Hello from Rust"
        assert (await client.get("/json")).json() == {"message": "Hello from Rust"}
        assert (await client.get("/zürich")).text == "Hello, visitor! You've requested: /zürich"
        packed = await client.get("/t/text")
        assert packed.headers["content-encoding"] == "gzip" and len(packed.text) == 12000
        body = b"x" * 300_000
        assert (await client.post("/t/echo", content=body)).content == body

        async def pieces():
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]

        assert (await client.post("/t/count", content=pieces())).text == "300000"
        answers = await asyncio.gather(*(client.get(f"/n{n}") for n in range(100)))
        assert [a.text for a in answers] == [f"Hello, visitor! You've requested: /n{n}" for n in range(100)]
        version = "HTTP/2" if options.get("http2") else "HTTP/1.1"
        assert answers[0].http_version == version, answers[0].http_version


asyncio.run(talk(f"http://{plain}"))
asyncio.run(talk(f"https://{tls}"))
asyncio.run(talk(f"https://{tls}", http2=True))
asyncio.run(talk(f"http://{plain}", http1=False, http2=True))
print("ok")
