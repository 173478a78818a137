//go:build e2e

package home

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
)

// nodeRED is a running Node-RED: what its debug nodes say, in order.
type nodeRED struct {
	*person
	nodes []map[string]any

	mu   sync.Mutex
	says []string
}

const editor = "http://127.0.0.1:1880"

// newNodeRED starts Node-RED by lines of a shell, with a folder of its own, and listens to its debug sidebar.
func newNodeRED(p *person, lines string) *nodeRED {
	p.Helper()
	n := &nodeRED{person: p}
	program := filepath.Join(harness.Need(p, "npm's packages", os.Getenv("NPM_MODULES")), "node-red/red.js")
	if _, err := os.Stat(program); err != nil {
		harness.Need(p, "Node-RED", "")
	}
	p.program("node-red",
		"exec "+harness.Need(p, "Node 22", harness.NodeProgram)+" "+program+" --userDir "+filepath.Join(p.dir, "node-red"))
	log, _ := p.start("sh", "-c", lines)
	harness.WaitFor(p, 2*time.Minute, "Node-RED runs", func() bool { // it answers before it has read its flows
		res, err := http.Get(editor + "/settings")
		if err == nil {
			res.Body.Close()
		}
		return err == nil && res.StatusCode == 200 && strings.Contains(log.String(), "Started flows")
	})
	ws, _, err := websocket.Dial(p.Context(), editor+"/comms", nil)
	if err != nil {
		p.Fatal(err)
	}
	ws.SetReadLimit(-1)
	if err := ws.Write(p.Context(), websocket.MessageText, []byte(`{"subscribe":"debug"}`)); err != nil {
		p.Fatal(err)
	}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	reading.Go(func() {
		for {
			_, text, err := ws.Read(ctx)
			if err != nil {
				return
			}
			n.hear(text)
		}
	})
	p.Cleanup(func() {
		cancel()
		reading.Wait()
		p.Logf("Node-RED says: %q", n.says)
	})
	return n
}

// hear takes events of the editor's socket. A debug node's has its name and what it was told to show.
func (n *nodeRED) hear(text []byte) {
	var events []struct {
		Topic string         `json:"topic"`
		Data  map[string]any `json:"data,omitempty"`
	}
	if json.Unmarshal(text, &events) != nil {
		return // another kind of event
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range events {
		if said, ok := e.Data["msg"].(string); ok && e.Topic == "debug" {
			name, _ := e.Data["name"].(string)
			n.says = append(n.says, name+" "+said)
		}
	}
}

// since returns the messages after the first begin ones.
func (n *nodeRED) since(begin int) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.says[begin:]
}

// until waits for what matches, behind the first so many, and returns how many were said then.
func (n *nodeRED) until(begin int, pattern string) (next int) {
	n.Helper()
	form := regexp.MustCompile(pattern)
	harness.WaitFor(n, time.Minute, pattern, func() bool {
		for i, s := range n.since(begin) {
			if form.MatchString(s) {
				next = begin + i + 1
				return true
			}
		}
		return false
	})
	return next
}

// deploy imports the flow as a person does, who fills in the keys of its flow and its server.
func (n *nodeRED) deploy(flow map[string]string, user, password string) {
	n.Helper()
	text, err := os.ReadFile("../../../../docs/node-red.json")
	if err != nil {
		n.Fatal(err)
	}
	n.nodes = nil
	if err := json.Unmarshal(text, &n.nodes); err != nil {
		n.Fatal(err)
	}
	for _, node := range n.nodes {
		switch node["type"] {
		case "tab":
			for _, e := range node["env"].([]any) {
				e := e.(map[string]any)
				if e["type"] == "cred" {
					node["credentials"] = map[string]any{e["name"].(string): flow[e["name"].(string)]}
				} else {
					e["value"] = flow[e["name"].(string)]
				}
			}
		case "mqtt-broker":
			node["credentials"] = map[string]any{"user": user, "password": password}
		}
	}
	text, _ = json.Marshal(n.nodes)
	n.post("/flows", text)
}

// post asks the editor, again while nodes start.
func (n *nodeRED) post(path string, body []byte) {
	n.Helper()
	harness.WaitFor(n, time.Minute, "Node-RED takes "+path, func() bool {
		res, err := http.Post(editor+path, "application/json", bytes.NewReader(body))
		if err != nil {
			n.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode/100 == 2
	})
}

// press presses the button of an inject node that ends at a node of that name, and returns how many were said before.
func (n *nodeRED) press(name, at string) int {
	n.Helper()
	begin := len(n.since(0))
	for _, node := range n.nodes {
		if node["type"] == "inject" && node["name"] == name && n.named(node["wires"].([]any)[0].([]any)[0].(string)) == at {
			n.post("/inject/"+node["id"].(string), nil)
			return begin
		}
	}
	n.Fatalf("there is no button %s", name)
	return 0
}

func (n *nodeRED) named(id string) any {
	for _, node := range n.nodes {
		if node["id"] == id {
			return node["name"]
		}
	}
	return nil
}

// TestNodeRED follows the recipe for Node-RED as it is written, with Debian's broker and the flow that the page gives
// away: it reads, moves, and shows why it is refused, by MQTT and by HTTP. What is moved ends.
func TestNodeRED(t *testing.T) {
	if !onOwnMachine(t) {
		return
	}
	p := newPerson(t)
	steps := recipe(t, "node-red")
	if kinds := len(steps); kinds != 4 || steps[1].kind != "yaml" {
		t.Fatalf("the recipe has other steps: %v", steps)
	}
	p.mosquitto()
	p.site("site: { name: garden }\ndevices: { bare: { driver: sim, model: relay } }\n")
	p.do(steps[0].text)
	p.write("agentsite.yaml", steps[1].text, 0o600)
	p.do(steps[2].text)
	name := regexp.MustCompile(`agentsite/(agentsite-\w+)/status `).FindStringSubmatch(p.do(steps[3].text))
	if name == nil {
		t.Fatal("the site is not found at the broker")
	}
	https := recipe(t, "node-red-https")
	p.do(https[0].text)
	n := newNodeRED(p, https[1].text)
	flow := map[string]string{"SITE": name[1], "URL": "http://127.0.0.1:8473", "TOKEN": p.read("nodered.token")}
	n.deploy(flow, "nodered", p.read("nodered.password"))

	// By MQTT.
	n.until(0, `^told by MQTT temperature: [0-9.]+$`)
	at := n.until(n.press("pump on", "command"), `^told by MQTT pump: true$`)
	at = n.until(at, `^told by MQTT pump: false$`) // its max_on
	harness.WaitFor(t, time.Minute, "the pump is off before its max_on", func() bool {
		from := n.press("pump on", "command")
		n.until(from, `^told by MQTT pump(: true$| refused: )`)
		n.until(n.press("pump off", "command"), `^told by MQTT pump(: false$| refused: )`)
		return strings.Contains(strings.Join(n.since(from), "\n"), "pump: true")
	})
	n.until(n.press("heater on: not allowed", "command"), `^told by MQTT heater refused: .*greenhouse/heater`)

	// By HTTP.
	n.until(n.press("read the temperature", "ask"), `^answered by HTTP greenhouse/temperature: [0-9.]+$`)
	harness.WaitFor(t, time.Minute, "the vent is moved", func() bool {
		at = n.press("vent to 40 for 5 s", "ask")
		end := n.until(at, `^answered by HTTP (greenhouse/vent: 40$|refused: )`)
		return strings.HasSuffix(n.since(end - 1)[0], ": 40")
	})
	n.until(n.until(at, `^told by MQTT vent: 40$`), `^told by MQTT vent: 0$`)
	n.until(n.press("heater on: not allowed", "ask"), `^answered by HTTP refused: .*set greenhouse/heater`)

	flow["URL"] = "https://127.0.0.1:8474"
	n.deploy(flow, "nodered", p.read("nodered.password"))
	n.until(n.press("read the temperature", "ask"), `^answered by HTTP greenhouse/temperature: [0-9.]+$`)

	for _, said := range n.since(0) {
		if strings.Contains(said, "heater: true") {
			t.Errorf("what is not allowed was moved: %s", said)
		}
	}
	why := p.do("agentsite why greenhouse/vent; agentsite why greenhouse/pump; agentsite agents")
	for _, who := range []string{"token:nodered.", "mqtt:mqtt"} {
		if !strings.Contains(why, who) {
			t.Errorf("%s is not named:\n%s", who, why)
		}
	}
}
