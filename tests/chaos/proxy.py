"""A TCP proxy whose connections can be delayed, cut, or silenced."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading


class Proxy:
    """Listens on a free port of `host` and forwards to `to`, in a thread of its own.

    `to` may be set later, and again: new connections go to the newest address. Any thread may call it.
    """

    def __init__(self, host: str, to: str = "") -> None:
        self.to = to
        # Seconds by which each piece of data is late, in both directions.
        self.delay_s = 0.0
        # Nothing is forwarded while this is set; what comes meanwhile is forwarded later.
        self.is_silent = False
        self._connections: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, host, 0), self._loop).result()
        self.address = "%s:%d" % self._server.sockets[0].getsockname()[:2]

    def cut(self) -> int:
        """Ends all connections with a reset. Returns their number."""
        return asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def close(self) -> None:
        """Ends all connections, and the thread."""
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _cut(self) -> int:
        connections = list(self._connections)
        for pair in connections:
            for writer in pair:
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
        return len(connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self.to.rsplit(":", 1)
        try:
            there_reader, there_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, there_writer)
        self._connections.add(pair)
        await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        self._connections.discard(pair)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                while self.is_silent:
                    await asyncio.sleep(0.02)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
