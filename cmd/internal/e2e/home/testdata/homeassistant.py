"""Home Assistant as far as an MQTT broker sees it: its client (paho), its templates (Jinja), and
what its MQTT integration does with a device that is discovered. Written after the behaviour of
homeassistant/components/mqtt in github.com/home-assistant/core: discovery.py, entity.py (availability
and attributes), client.py (birth and will), and the files of the platforms, as of 2026.

usage: homeassistant.py PORT USER PASSWORD SLOW
SLOW is how many seconds it takes from a discovery to the subscription to the topics of its entities.
Each change of an entity, trigger or removal is a line of JSON on stdout. A line of JSON on stdin is a
service that somebody calls: {"key": ..., "do": ..., "with": ...}.
"""

import json
import queue
import sys
import threading

import paho.mqtt.client as mqtt
from jinja2.sandbox import ImmutableSandboxedEnvironment

STATUS = "homeassistant/status"
NUMERIC = {"measurement", "total", "total_increasing"}
REQUIRED = {
    "sensor": ["state_topic"], "binary_sensor": ["state_topic"], "switch": ["command_topic"],
    "number": ["command_topic"], "light": ["command_topic"], "valve": [], "notify": ["command_topic"],
    "image": ["image_topic"], "button": ["command_topic"], "event": ["state_topic", "event_types"],
    "device_automation": ["automation_type", "topic", "type", "subtype"],
}
environment = ImmutableSandboxedEnvironment()
work = queue.Queue()  # what the one loop does


def say(**what):
    print(json.dumps(what), flush=True)


def render(template, payload):
    """async_render_with_possible_json_value: value, and value_json where it is JSON."""
    if template is None:
        return payload
    values = {"value": payload}
    try:
        values["value_json"] = json.loads(payload)
    except ValueError:
        pass
    return environment.from_string(template).render(values).strip()


class Entity:
    def __init__(self, home, key, config):
        self.home, self.key, self.config = home, key, config
        self.platform = config["platform"]
        self.state = self.attributes = None
        self.more = {}
        self.there = [None] * len(config.get("availability", []))
        self.said = None
        for name in REQUIRED[self.platform]:
            if name not in config:
                raise ValueError(f"{key}: {name} is missing")
        if self.platform == "number" and config.get("min", 1) >= config.get("max", 100):
            raise ValueError(f"{key}: min and max")
        if self.platform == "valve" and config.get("reports_position"):
            for name in ("payload_open", "payload_close", "state_open", "state_closed"):
                if name in config:
                    raise ValueError(f"{key}: {name} with a position")

    def topics(self):
        c = self.config
        names = ("state_topic", "json_attributes_topic", "brightness_state_topic", "image_topic", "topic")
        found = {c[n] for n in names if n in c}
        return found | {a["topic"] for a in c.get("availability", [])}

    def received(self, topic, payload, retain):
        c = self.config
        if self.platform == "device_automation":
            if topic == c["topic"] and ("payload" not in c or payload.decode() == c["payload"]):
                say(trigger=self.key, type=c["type"], subtype=c["subtype"])
            return
        if topic == c.get("image_topic"):
            self.more["bytes"] = len(payload)
            return self.tell()
        text = payload.decode()
        for i, a in enumerate(c.get("availability", [])):
            if a["topic"] == topic:
                word = render(a.get("value_template"), text)
                if word == a.get("payload_available", "online"):
                    self.there[i] = True
                elif word == a.get("payload_not_available", "offline"):
                    self.there[i] = False
        if topic == c.get("json_attributes_topic"):
            self.attributes = json.loads(text)
            if not isinstance(self.attributes, dict):
                raise ValueError(f"{self.key}: the attributes are no object")
        if topic == c.get("state_topic"):
            template = c.get("state_value_template", c.get("value_template"))
            self.take(render(template, text), retain)
        if topic == c.get("brightness_state_topic"):
            value = float(render(c.get("brightness_value_template"), text))
            if value != 0:
                self.more["brightness"] = min(round(value / c["brightness_scale"] * 255), 255)
        self.tell()

    def take(self, text, retain):
        """What each platform makes of a state."""
        c, p = self.config, self.platform
        if p == "event":
            if retain:
                return
            event = json.loads(text)
            kind = event.pop("event_type")
            if kind not in c["event_types"]:
                raise ValueError(f"{self.key}: {kind} is no type of it")
            say(event=self.key, type=kind, attributes=event)
        elif text == "None":
            self.state = None
        elif p == "sensor":
            if "state_class" in c and c["state_class"] in NUMERIC:
                self.state = float(text)
            elif "options" in c and text not in c["options"]:
                raise ValueError(f"{self.key}: {text} is no option")
            else:
                self.state = text
        elif p in ("binary_sensor", "switch", "light"):
            self.state = {c.get("payload_on", "ON"): "on", c.get("payload_off", "OFF"): "off"}[text]
        elif p == "number":
            self.state = float(text)
            if not c.get("min", 1) <= self.state <= c.get("max", 100):
                raise ValueError(f"{self.key}: {text} is out of range")
        elif p == "valve" and c.get("reports_position"):
            low, high = c.get("position_closed", 0) + 1, c.get("position_open", 100)
            n = int((float(text) - (low - 1)) * 100 // (high - low + 1))  # ranged_value_to_percentage
            self.more["position"] = min(max(n, 0), 100)
            self.state = "closed" if self.more["position"] == 0 else "open"
        elif p == "valve":
            self.state = {c["state_open"]: "open", c["state_closed"]: "closed"}[text]

    def tell(self):
        available = all(t is True for t in self.there)
        now = {"key": self.key, "platform": self.platform, "available": available,
               "state": self.state, "attributes": self.attributes, **self.more}
        if now != self.said:
            self.said = now
            say(**now)

    def call(self, do, argument):
        """A service, as the platform's code answers it with a command."""
        c, p = self.config, self.platform
        topic = c["command_topic"]
        if p == "switch":
            payload = {"turn_on": c.get("payload_on", "ON"), "turn_off": c.get("payload_off", "OFF")}[do]
        elif p == "light" and do == "turn_off":
            payload = c.get("payload_off", "OFF")
        elif p == "light" and c.get("on_command_type") == "brightness":
            topic = c["brightness_command_topic"]
            wanted = argument if argument is not None else self.more.get("brightness", 255)
            payload = max(min(round(wanted / 255 * c["brightness_scale"]), c["brightness_scale"]), 1)
        elif p == "light":
            payload = c.get("payload_on", "ON")
        elif p == "number":
            payload = int(argument) if float(argument).is_integer() else argument
        elif p == "valve" and c.get("reports_position"):  # open and close are positions then
            wanted = {"open_valve": 100, "close_valve": 0}.get(do, argument)
            low, high = c.get("position_closed", 0) + 1, c.get("position_open", 100)
            payload = round((high - low + 1) * wanted / 100 + low - 1)  # percentage_to_ranged_value
        elif p == "valve":
            payload = {"open_valve": c.get("payload_open", "OPEN"), "close_valve": c.get("payload_close", "CLOSE")}[do]
        elif p == "button":
            payload = c.get("payload_press", "PRESS")
        elif p == "notify":
            payload = argument
        self.home.client.publish(topic, payload, c.get("qos", 0), c.get("retain", False))


class Home:
    def __init__(self, port, user, password, slow):
        self.slow, self.entities, self.listens, self.found = slow, {}, set(), {}
        self.client = mqtt.Client(client_id="homeassistant", clean_session=True)
        self.client.username_pw_set(user, password)
        self.client.will_set(STATUS, "offline", 0, False)
        self.client.on_connect = lambda *_: work.put(self.connected)
        self.client.on_message = lambda _c, _u, m: work.put(lambda: self.message(m))
        self.client.connect("127.0.0.1", port, keepalive=60)
        self.client.loop_start()

    def connected(self):
        self.client.subscribe([("homeassistant/+/+/config", 0), ("homeassistant/+/+/+/config", 0)])
        threading.Timer(max(0.5, 2 * self.slow), lambda: work.put(self.birth)).start()

    def birth(self):
        """After the discovery, as the client waits for it to cool down."""
        self.client.publish(STATUS, "online", 0, False)
        say(born=True)

    def message(self, m):
        if m.topic.endswith("/config"):
            return self.discovered(m.topic, m.payload.decode())
        for e in list(self.entities.values()):
            if m.topic in e.topics():
                e.received(m.topic, m.payload, m.retain)

    def discovered(self, topic, text):
        parts = topic.split("/")
        if parts[1] != "device":
            return
        if not text:
            for key in self.found.pop(topic, []):
                self.remove(key)
            return
        payload = json.loads(text)
        if not payload["device"].get("identifiers") or not payload["origin"].get("name"):
            raise ValueError("no device or origin")
        shared = {k: payload[k] for k in ("qos", "encoding", "availability", "state_topic", "command_topic") if k in payload}
        keys, ids = set(), {}
        for key, component in payload["components"].items():
            if set(component) == {"platform"}:
                self.remove(key)
                continue
            config = {**shared, **component}
            if config["platform"] != "device_automation":
                if config["unique_id"] in ids:
                    raise ValueError(f"{key} has the ID of {ids[config['unique_id']]}")
                ids[config["unique_id"]] = key
            keys.add(key)
            before = self.entities.get(key)
            if before is None or before.config != config:
                e = Entity(self, key, config)
                threading.Timer(self.slow, lambda e=e: work.put(lambda: self.add(e))).start()
        self.found[topic] = keys | set(self.found.get(topic, []))

    def add(self, entity):
        if (before := self.entities.get(entity.key)) is not None:  # an update keeps what is known
            entity.state, entity.attributes, entity.more = before.state, before.attributes, before.more
            if before.config.get("availability") == entity.config.get("availability"):
                entity.there = before.there
        self.entities[entity.key] = entity
        for topic in sorted(entity.topics()):
            if topic not in self.listens:
                self.listens.add(topic)
            self.client.subscribe(topic, 0)
        if entity.platform != "device_automation":
            entity.tell()

    def remove(self, key):
        if self.entities.pop(key, None) is not None:
            say(removed=key)


def main():
    home = Home(int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))

    def listen():
        for line in sys.stdin:
            asked = json.loads(line)
            work.put(lambda a=asked: home.entities[a["key"]].call(a["do"], a.get("with")))

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            work.get()()
        except Exception as e:  # as its log has it
            say(error=f"{type(e).__name__}: {e}")


main()
