"""A small server with OpenAI's API, for what a real one does not do when asked: fail, refuse, or know only chat.

As a process of its own, to be killed: python -m tests.selector.generation.fake_server PORT LOG [SECONDS SLOTS], where
LOG gets one line of JSON for every request it was sent; each takes SECONDS, and SLOTS of them are answered at once.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODEL = "assay-tiny"
Answer = tuple[int, dict[str, object]]  # status and body
DROPPED: Answer = (0, {})  # the connection is closed without an answer


def completion_body(body: dict, *, with_ids: bool = True) -> dict[str, object]:
    """Answer as vLLM does at /v1/completions: every choice says how many ids its prompt had, in two tokens."""
    choice = {"finish_reason": "stop", "logprobs": None, **({"token_ids": [7, 8]} if with_ids else {})}
    prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
    texts = [f"\\boxed{{{len(prompt)}}}" for prompt in prompts for _ in range(body.get("n") or 1)]
    return {
        "id": "1",
        "object": "text_completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": i, "text": text, **choice} for i, text in enumerate(texts)],
    }


def chat_body(content: str) -> dict[str, object]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def listening(answer: Callable[[str, dict], Answer], *, port: int = 0, context: int = 256) -> Server:
    """Listen on loopback with ``answer(path, body)``; GET /v1/models knows one model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            known = {"id": MODEL, "object": "model", "created": 0, "owned_by": "test", "max_model_len": context}
            is_list = self.path == "/v1/models"
            self._send(*((200, {"object": "list", "data": [known]}) if is_list else (404, {"error": "no such path"})))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*answer(self.path, body))

        def _send(self, status, body):
            if status == 0:
                self.close_connection = True
                return
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status >= 500 or status == 429:
                self.send_header("retry-after-ms", "5")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    return Server(("127.0.0.1", port), Handler)


@contextmanager
def fake_server(answer: Callable[[str, dict], Answer], *, context: int = 256) -> Iterator[str]:
    """Serve from a thread and yield the base URL."""
    server = listening(answer, context=context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main(port: int, log: Path, seconds: float = 0.0, n_slots: int = 64) -> None:
    lock, slots = threading.Lock(), threading.Semaphore(n_slots)

    def answer(path: str, body: dict) -> Answer:
        with lock, log.open("a") as lines:
            lines.write(json.dumps(body) + "\n")
        with slots:
            time.sleep(seconds)
        return 200, completion_body(body)

    listening(answer, port=port).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:4]), *map(int, sys.argv[4:5]))
