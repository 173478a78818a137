package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"
)

// sensors is a device that says what a test has it say.
type sensors chan device.Reading

func (s sensors) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case r := <-s:
			emit(r)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// relay is the outputs of a site with one, a/relay, that somebody holds.
type relay struct{ node.Outputs }

func (relay) Policy(string) (guard.Policy, error) {
	return guard.Policy{Output: "a/relay", Safe: device.Bool(false)}, nil
}
func (relay) Status() []guard.Status {
	return []guard.Status{{Output: "a/relay", Value: device.Bool(true), Goal: device.Bool(true), Holder: "ann", Left: time.Minute}}
}
func (r relay) StatusOf(output string) (guard.Status, bool) {
	s := r.Status()[0]
	return s, output == s.Output
}
func (relay) Stopped() bool            { return false }
func (relay) Changed() <-chan struct{} { return nil }

// newSite is a bench whose site has a/t, in °C, a/gone and a/relay.
func newSite() (b *bench, put sensors, reload func()) {
	put = make(sensors)
	hub := node.NewHub(nil, forgetful{}, func(a string) string { return "agentsite:///" + a })
	ending, end := context.WithCancel(context.Background())
	n := node.New(node.Parts{Hub: hub, Token: "secret"})
	site := node.Site{Name: "test", Outputs: relay{}, Devices: []node.Device{{Name: "a", Description: device.Description{Points: []device.Point{
		{Name: "t", Kind: device.KindMeasurement, Unit: "Cel"}, {Name: "relay", Kind: device.KindSwitch}, {Name: "gone", Kind: device.KindState},
	}}}}}
	reload = func() {
		if err := n.Replace(site); err != nil {
			panic(err)
		}
		site.Devices[0].Description.Points = site.Devices[0].Description.Points[:2:2]
	}
	reload()
	s := mcp.New(ending, n, tools.New(n, n), mcp.Implementation{Name: "test", Version: "1"}, "")
	go hub.Sample(ending, nil, put)
	return &bench{hub: hub, dispatcher: rpc.NewDispatcher(s.Methods()), end: end}, put, reload
}

// listen is a subscriptions/listen with members of its _meta.
func listen(meta, notifications string) string {
	return strings.Replace(message("subscriptions/listen", `"notifications":{`+notifications+`}`, "{}"), `"_meta":{`, `"_meta":{`+meta+`,`, 1)
}

// TestValues: the exact messages of a subscription to values, in both encodings.
func TestValues(t *testing.T) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		synctest.Test(t, func(t *testing.T) {
			b, put, reload := newSite()
			heard := make(chan string, 10)
			body := []byte(listen(`"agentsite/values":2`, `"toolsListChanged":true`))
			if codec == rpc.CBOR {
				body = toCBOR(t, string(body))
			}
			go b.say(t.Context(), codec, body, local, nil, func(s string) { heard <- s })
			next := func(want ...string) {
				t.Helper()
				synctest.Wait()
				for _, want := range want {
					got := ""
					if len(heard) > 0 {
						got = <-heard
					}
					if codec == rpc.CBOR && got != "" {
						var raw rpc.Raw
						var text bytes.Buffer
						if codec.Decode([]byte(got), &raw) != nil || rpc.JSON.Encode(&text, raw) != nil {
							t.Fatalf("%x", got)
						}
						got = text.String()
					}
					if sorted(t, got) != sorted(t, want) {
						t.Errorf(" got %s\nwant %s", got, want)
					}
				}
				if len(heard) > 0 {
					t.Errorf("%d more", len(heard))
				}
			}
			const sub = `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
			values := func(members string) string {
				return `{"jsonrpc":"2.0","method":"notifications/agentsite/values","params":{` + sub + `,` + members + `}}`
			}
			const held = `"output":{"held_by":"ann","seconds_left":60}`
			next(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"agentsite/values":2},`+
				`"notifications":{"toolsListChanged":true}}}`,
				values(`"points":[{"point":"a/t","unit":"Cel"},{"point":"a/relay"},{"point":"a/gone"}],"readings":[{"i":0,"age_seconds":0,"quality":"stale","why":"no reading yet"},`+
					`{"i":1,"age_seconds":0,"quality":"stale","why":"no reading yet",`+held+`},{"i":2,"age_seconds":0,"quality":"stale","why":"no reading yet"}],`+
					`"approvals":[],"emergency_stop":false`))
			put <- device.Reading{Point: "a/gone", Value: device.Bool(true), Quality: device.Good, At: time.Now()}
			put <- device.Reading{Point: "a/t", Value: device.Number(1), Quality: device.Good, At: time.Now()}
			next() // two seconds lie between them
			time.Sleep(2 * time.Second)
			next(values(`"readings":[{"i":0,"value":1,"age_seconds":2},{"i":2,"value":true,"age_seconds":2}]`))
			reload()
			time.Sleep(2 * time.Second)
			next(values(`"points":[{"point":"a/t","unit":"Cel"},{"point":"a/relay"}],"readings":[{"i":0,"value":1,"age_seconds":4},`+
				`{"i":1,"age_seconds":0,"quality":"stale","why":"no reading yet",`+held+`}],"approvals":[],"emergency_stop":false`),
				`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+sub+`}}`)
			b.end()
			next(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/subscriptionId":1}}}`)
		})
	}
}

func TestValuesRefused(t *testing.T) {
	b, _, _ := newSite()
	defer b.end()
	for _, tt := range [][2]string{
		{`"agentsite/values":-1`, ""}, {`"agentsite/values":3600.5`, ""}, {`"agentsite/values":"1"`, ""}, {`"agentsite/values":null`, ""}, {`"agentsite/values":true`, ""},
		{`"agentsite/values":1`, `"resourceSubscriptions":["agentsite:///a/none"]`}, {`"agentsite/values":1`, `"resourceSubscriptions":["t:a"]`},
		{`"agentsite/values":1`, `"resourceSubscriptions":["a/t"]`},
		{`"agentsite/values":1`, `"resourceSubscriptions":["agentsite:///a/t","agentsite:///a/t"]`},
	} {
		if got := b.lines(t, listen(tt[0], tt[1]), nil); len(got) != 1 || field(t, got[0], "error", "code") != -32602.0 {
			t.Errorf("%s: %s", tt, got)
		}
	}
}

// BenchmarkValues is one update of a reading to a subscriber among thirty points.
func BenchmarkValues(b *testing.B) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		b.Run(codec.ContentType(), func(b *testing.B) {
			hub := node.NewHub(nil, forgetful{}, func(a string) string { return "agentsite:///" + a })
			n := node.New(node.Parts{Hub: hub, Token: "secret"})
			var points []device.Point
			for i := range 30 {
				points = append(points, device.Point{Name: fmt.Sprintf("p%d", i), Kind: device.KindMeasurement, Unit: "Cel"})
			}
			if err := n.Replace(node.Site{Name: "test", Devices: []node.Device{{Name: "a", Description: device.Description{Points: points}}}}); err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			put, ended := make(sensors), make(chan struct{})
			go hub.Sample(ctx, nil, put)
			d := rpc.NewDispatcher(mcp.New(ctx, n, tools.New(n, n), mcp.Implementation{Name: "test", Version: "1"}, "").Methods())
			body := []byte(listen(`"agentsite/values":0`, ""))
			if codec == rpc.CBOR {
				body = toCBOR(b, string(body))
			}
			sent := make(chan int, 10)
			go func() {
				defer close(ended)
				d.Serve(ctx, &rpc.Incoming{Codec: codec, Body: body, Sender: local, Send: func(o rpc.Outgoing) error { sent <- len(o.Body); return nil }})
			}()
			<-sent
			<-sent
			b.ReportAllocs()
			v, size := 0.0, 0
			for b.Loop() {
				v++
				put <- device.Reading{Point: "a/p7", Value: device.Number(v), Quality: device.Good, At: time.Now()}
				size = <-sent
			}
			b.ReportMetric(float64(size), "bytes")
			cancel()
			<-ended
		})
	}
}
