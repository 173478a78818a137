//go:build e2e && linux

package devices

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device/esphome/esphometest"
)

// BenchmarkIdle measures what ten devices elsewhere cost at rest and safe: wake-ups, CPU and memory of the processes of
// the site and of its guard, and bytes on the network. A row is a kind of device with a relay, or with a relay and a
// reading at the driver's usual interval. Figures with ×none are multiples of those of ten simulated relays.
//
//	AGENTSITE=… go test -tags e2e -run ^$ -bench Idle -benchtime 1x ./cmd/internal/e2e/devices
func BenchmarkIdle(b *testing.B) {
	var none map[string]float64
	row := func(name string, start func(b *testing.B, l *carrier) (keys func(i int) string)) {
		b.Run(name, func(b *testing.B) {
			l := &carrier{TB: b}
			figures := idle(b, start(b, l), l.bytes.Load)
			if name == "none" {
				none = figures
			}
			for what, figure := range figures {
				b.ReportMetric(figure, what)
				if base := none[what]; name != "none" && base > 0 {
					kind, _, _ := strings.Cut(what, "/")
					b.ReportMetric(figure/base, kind+"-×none")
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	row("none", func(*testing.B, *carrier) func(int) string {
		return func(int) string { return "{ driver: sim, model: relay, min_off: 0s }" }
	})
	row("mqtt", func(b *testing.B, l *carrier) func(int) string {
		broker := serveBroker(b, l.listen())
		return func(i int) string {
			return fmt.Sprintf("{ driver: mqtt, broker: \"mqtt://%s\", "+
				"outputs: { relay: { topic: x%[2]d/state, set: x%[2]d/set, safe: off } } }", broker.listen.Addr(), i)
		}
	})
	for _, with := range []struct{ name, esphome, modbus, http, thing string }{
		{},
		{
			"+reading", "inputs: { power: { entity: sensor/power, unit: W, range: 0..4000 } }, ",
			"inputs: { power: { input: 1, unit: W, range: 0..4000 } }, ",
			"inputs: { power: { from: /state, path: power, unit: W, range: 0..4000 } }, ",
			"inputs: { power: { unit: W, range: 0..4000 } }, ",
		},
	} {
		row("esphome"+with.name, func(b *testing.B, l *carrier) func(int) string {
			return func(int) string {
				n, at := esphometest.New(&esphometest.Entity{Kind: "switch", Name: "Relay"},
					&esphometest.Entity{Kind: "sensor", Name: "Power", Unit: "W", Number: 5}), l.listen()
				n.ServeAt(b, at)
				return fmt.Sprintf("{ driver: esphome, address: %q, plaintext: on, %s"+
					"outputs: { relay: { entity: switch/relay, safe: off } } }", at.Addr(), with.esphome)
			}
		})
		row("modbus"+with.name, func(b *testing.B, l *carrier) func(int) string {
			at := l.listen()
			serveUnits(b, at)
			return func(i int) string {
				return fmt.Sprintf("{ driver: modbus, address: %q, unit_id: %d, %s"+
					"outputs: { relay: { coil: 1, safe: off } } }", at.Addr(), i+1, with.modbus)
			}
		})
		row("http"+with.name, func(_ *testing.B, l *carrier) func(int) string {
			return func(int) string {
				return fmt.Sprintf("{ driver: http, url: \"http://%s\", %soutputs: { relay: "+
					"{ from: /state, path: relay, set: \"/set?{value}\", method: GET, safe: off } } }", l.serveDocuments(), with.http)
			}
		})
		row("thing"+with.name, func(_ *testing.B, l *carrier) func(int) string {
			return func(int) string {
				return fmt.Sprintf("{ driver: thing, url: \"http://%s/thing\", %s"+
					"outputs: { relay: { safe: off } } }", l.serveDocuments(), with.thing)
			}
		})
	}
}

// idle measures the costs of a site with ten devices at rest. carried returns the bytes on the network so far.
func idle(b *testing.B, keys func(i int) string, carried func() int64) map[string]float64 {
	b.Helper()
	const rest = 30 * time.Second
	var devices strings.Builder
	for i := range 10 {
		fmt.Fprintf(&devices, "  d%d: %s\n", i, keys(i))
	}
	harness.AsService(b)
	r := harness.Start(b, "site: { name: idle }\ndevices:\n"+devices.String(),
		harness.Need(b, "the program", harness.Program))
	defer r.Stop(b)
	harness.WaitFor(b, time.Minute, "all points are good", func() bool {
		says, err := r.CLI(b, "read")
		return err == nil && strings.Count(says, "fault") == 0
	})
	time.Sleep(10 * time.Second) // let the start settle
	pids := [2]int{r.Cmd.Process.Pid, r.Guard(b)}
	var woken, cpu [2]float64
	before := carried()
	for i, pid := range pids {
		woken[i], cpu[i] = harness.VoluntarySwitches(b, pid), harness.CPUTime(b, pid).Seconds()
	}
	time.Sleep(rest)
	figures := map[string]float64{"network-bytes/s": float64(carried()-before) / rest.Seconds()}
	for i, name := range []string{"site", "guard"} {
		figures[name+"-switches/s"] = (harness.VoluntarySwitches(b, pids[i]) - woken[i]) / rest.Seconds()
		figures[name+"-cpu-ms/s"] = (harness.CPUTime(b, pids[i]).Seconds() - cpu[i]) * 1000 / rest.Seconds()
		figures[name+"-anonymous-MB"] = harness.Status(b, pids[i], "RssAnon:") / 1024
	}
	return figures
}

// carrier makes listeners, and counts the bytes in both directions of their connections.
type carrier struct {
	testing.TB
	bytes atomic.Int64
}

func (l *carrier) listen() net.Listener {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	return carriedListener{at, l}
}

type carriedListener struct {
	net.Listener
	*carrier
}

func (l carriedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return carriedConn{c, l.carrier}, err
}

type carriedConn struct {
	net.Conn
	*carrier
}

func (c carriedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c carriedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// serveDocuments serves a relay that is off and a power as a document at /state, and as a Thing at /thing, and returns
// its host.
func (l *carrier) serveDocuments() string {
	mux := http.NewServeMux()
	for where, says := range map[string]string{
		"/state": `{"relay":false,"power":5}`, "/set": "", "GET /relay": "false", "PUT /relay": "", "/power": "5",
		"/thing": `{"@context":"https://www.w3.org/2022/wot/td/v1.1","title":"plug",
			"securityDefinitions":{"none":{"scheme":"nosec"}},"security":"none","properties":{
			"relay":{"type":"boolean","forms":[{"href":"/relay"}]},
			"power":{"type":"number","unit":"W","readOnly":true,"forms":[{"href":"/power"}]}}}`,
	} {
		mux.HandleFunc(where, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, says) })
	}
	s := httptest.NewUnstartedServer(mux)
	s.Listener.Close()
	s.Listener = l.listen()
	s.Start()
	l.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// serveUnits serves units of Modbus TCP, whose coils are off and whose registers are 5, until the benchmark ends.
func serveUnits(b *testing.B, at net.Listener) {
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return
			}
			b.Cleanup(func() { c.Close() })
			go serveUnit(c)
		}
	})
	b.Cleanup(func() { at.Close(); serving.Wait() })
}

func serveUnit(c net.Conn) {
	head := make([]byte, 8) // and the function
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		ask := make([]byte, binary.BigEndian.Uint16(head[4:])-2)
		if _, err := io.ReadFull(c, ask); err != nil {
			return
		}
		answer := ask[:4] // of a write
		switch count := binary.BigEndian.Uint16(ask[2:]); head[7] {
		case 1:
			answer = append([]byte{byte((count + 7) / 8)}, make([]byte, (count+7)/8)...)
		case 4:
			answer = []byte{byte(2 * count)}
			for range count {
				answer = append(answer, 0, 5)
			}
		}
		binary.BigEndian.PutUint16(head[4:], uint16(2+len(answer)))
		c.Write(append(head, answer...)) // head is full: append copies it
	}
}
