"""Stands in for a model's service: HTTPS on the loopback address, and the same answers each time."""

import json
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ANSWERS = {
    0: {"tool": "stock", "item": "bolts"},
    1: {"tool": "stock", "item": "nuts"},
    2: {"tool": "order", "item": "bolts"},
}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["x-api-key"] != "test-0123456789abcdefghijklmnop":
            return self.send_error(401)
        results = [each["result"] for each in asked["messages"] if "result" in each]
        answer = ANSWERS.get(len(results)) or {"tool": "done", "text": f"The last order: {results[-1]}."}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


place = Path("port.txt")
# A program that is continued asks at the address that it knows.
server = HTTPServer(("127.0.0.1", int(place.read_text()) if place.exists() else 0), Model)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("model.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
place.write_text(str(server.server_port))
server.serve_forever()
