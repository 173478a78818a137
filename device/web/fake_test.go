package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/device"
	"agentsite/device/driver"
)

// sessionOfFake names the function in which a session of the SDK's server waits. It ends with the client's request only.
const sessionOfFake = "github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(sessionOfFake)) }

// fake is a server with a switch and a level, whose answers a test can spoil.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	deaf   bool // accepts writes without obeying
	relay  bool
	level  float64
	asked  int
	writes []string
	td     string
	spoil  http.HandlerFunc // answers instead, if set
}

func newFake(t *testing.T) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() { f.Server.CloseClientConnections(); f.Server.Close() })
	return f
}

func (f *fake) set(spoil http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoil = spoil
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fake) has(point string) device.Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	if point == "level" {
		return device.Number(f.level)
	}
	return device.Bool(f.relay)
}

// put changes a point. The caller holds mu.
func (f *fake) put(point string, v device.Value) {
	if point == "level" {
		f.level = v.Number()
	} else {
		f.relay = v.Bool()
	}
}

// write is put for a client.
func (f *fake) write(point string, v device.Value) {
	if !f.deaf {
		f.put(point, v)
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked++
	spoil := f.spoil
	f.mu.Unlock()
	if spoil != nil {
		body, _ := io.ReadAll(r.Body) // without which the end of the client is not seen
		r.Body = io.NopCloser(bytes.NewReader(body))
		spoil(w, r)
		return
	}
	f.answer(w, r)
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.URL.Path {
	case "/status":
		fmt.Fprintf(w, `{"relays":[{"ison":%t}],"level":%v,"temperature":{"value":21.5,"unit":"°C"},"mode":"idle"}`,
			f.relay, f.level)
	case "/relay":
		f.write("relay", device.Bool(r.URL.Query().Get("turn") == "on"))
		f.writes = append(f.writes, r.URL.RawQuery)
	case "/level":
		f.writes = append(f.writes, string(body))
		var to float64
		fmt.Sscanf(string(body), `{"to":%f}`, &to)
		f.write("level", device.Number(to))
	case "/td":
		if f.td == "" {
			f.td = thingDescription
		}
		w.Header().Set("Content-Type", "application/td+json")
		io.WriteString(w, f.td)
	case "/properties/relay", "/properties/level", "/properties/temperature":
		name := r.URL.Path[len("/properties/"):]
		switch {
		case r.Method == "PUT" && name == "relay":
			f.write(name, device.Bool(string(body) == "true"))
		case r.Method == "PUT":
			to, _ := strconv.ParseFloat(string(body), 64)
			f.write(name, device.Number(math.Trunc(to)))
		case name == "relay":
			fmt.Fprint(w, f.relay)
		case name == "level":
			fmt.Fprint(w, f.level)
		default:
			io.WriteString(w, `{"value":21.5}`)
		}
	default:
		http.NotFound(w, r)
	}
}

func celsius() driver.Quantity {
	return driver.Quantity{Unit: "Cel", Range: device.Range{Min: -40, Max: 85}}
}

// thingDescription has the forms that the specification has in its examples, and hrefs relative to base.
const thingDescription = `{"@context":"https://www.w3.org/2022/wot/td/v1.1","title":"fake","base":"/properties/","security":"none",
"securityDefinitions":{"none":{"scheme":"nosec"}},"properties":{
"relay":{"type":"boolean","forms":[{"href":"coap://127.0.0.1/relay"},{"href":"relay{?for}","op":["readproperty","writeproperty"]}]},
"level":{"type":"integer","minimum":0,"maximum":100,"unit":"unit:PERCENT","forms":[{"href":"level","op":"observeproperty","subprotocol":"sse"},{"href":"level"}]},
"temperature":{"type":"object","readOnly":true,"forms":[{"href":"temperature","contentType":"application/json;charset=utf-8"}]}}}`

func (f *fake) thing() *thingConfig {
	percent := driver.Quantity{Unit: "%", Range: device.Range{Min: 0, Max: 100}}
	c := &thingConfig{
		Inputs: map[string]thingInput{"warmth": {Property: "temperature", Path: "value",
			InputPoint: driver.InputPoint{Quantity: celsius()}}},
		Outputs: map[string]thingOutput{
			"relay": {OutputPoint: driver.OutputPoint{Safe: device.Bool(false)}},
			"level": {OutputPoint: driver.OutputPoint{Quantity: percent, Safe: device.Number(0)}},
		},
	}
	if f.Server != nil {
		c.URL = f.URL + "/td"
	}
	return c
}

// config has all kinds of points.
func (f *fake) config() *documentConfig {
	status := func(path string) documentPlace { return documentPlace{From: "/status", Path: driver.Path(path)} }
	url := ""
	if f.Server != nil {
		url = f.URL
	}
	return &documentConfig{
		endpoint: endpoint{URL: url},
		Inputs: map[string]documentInput{
			"temperature": {documentPlace: status("temperature.value"), UnitPath: "temperature.unit",
				InputPoint: driver.InputPoint{Quantity: celsius()}},
			"mode": {documentPlace: status("mode"), InputPoint: driver.InputPoint{Values: []string{"idle", "heating"}}},
		},
		Outputs: map[string]documentOutput{
			"relay": {documentPlace: status("relays[0].ison"),
				OutputPoint: driver.OutputPoint{Safe: device.Bool(false)},
				Set:         "/relay?turn={value}", Method: "GET", outputWords: outputWords{OnIs: "on", OffIs: "off"}},
			"level": {documentPlace: status("level"), Set: "/level", Body: `{"to":{value}}`,
				OutputPoint: driver.OutputPoint{
					Quantity: driver.Quantity{Unit: "%", Range: device.Range{Min: 0, Max: 100}},
					Safe:     device.Number(0)},
				outputWords: outputWords{Step: 0.5}},
		},
	}
}

func open(t *testing.T, c driver.Config) *remote {
	t.Helper()
	dev, err := driver.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	if only, ok := dev.(*reader); ok {
		return only.remote
	}
	return dev.(*remote)
}

func reading(t *testing.T, r *remote, name string) device.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	all, err := r.Sample(ctx)
	for _, is := range all {
		if is.Point == name {
			return is
		}
	}
	why := "there is no such point"
	if err != nil {
		why = err.Error()
	}
	return device.Reading{Point: name, Quality: device.Bad, Why: why}
}

func file(t *testing.T, content string) driver.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "it.key")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return driver.File(name)
}

// documents are answers that no point may be read from.
var spoiled = map[string]http.HandlerFunc{
	"status":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
	"html":      func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>please sign in</html>") },
	"empty":     func(w http.ResponseWriter, r *http.Request) {},
	"deep": func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat(`{"level":[`,
			20_000))
	},
	"nan":     func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"level":NaN}`) },
	"endless": func(w http.ResponseWriter, r *http.Request) { flood(w, r, strings.Repeat(" ", 32<<10)) },
	"drip":    func(w http.ResponseWriter, r *http.Request) { drip(w, r) },
	"cut": func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"level":1`)
		panic(http.ErrAbortHandler)
	},
	"silent": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"compressed": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "\x1f\x8b")
	},
	"header": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) },
}

func flood(w http.ResponseWriter, r *http.Request, text string) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
}
