package p2p_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/identity"
	"agentsite/transport/mcp"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// reader is an agent with a read_points whose answer is always the same.
type reader struct{}

func (reader) Tools() []tools.Tool {
	return []tools.Tool{{Name: "read_points", Input: []byte(`{"type":"object"}`)}}
}

func (reader) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	var in struct {
		Points []string `json:"points"`
	}
	return tools.Result{Value: reading{"greenhouse/temperature", 21.37, "Cel"}}, c.Args.Decode(&in)
}

type reading struct {
	Point string  `json:"point"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

const token = "0123456789abcdef"

type params struct {
	Name      string `json:"name"`
	Arguments struct {
		Points []string `json:"points"`
	} `json:"arguments"`
	Meta struct {
		Version      string   `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities struct{} `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

// inboundConn is an inbound connection and its network.
func inboundConn(id uint64) rpc.Request {
	p := params{Name: "read_points"}
	p.Arguments.Points = []string{"greenhouse/temperature"}
	p.Meta.Version = rpc.Revision
	return rpc.Request{ID: rpc.NumberID(id), Method: "tools/call", Name: "read_points", Version: rpc.Revision, Params: p}
}

// BenchmarkToolsCall alternates four calls, so that other load of the machine affects all: an echo
// over a libp2p stream; a tools/call of the same bytes over another stream of the same connection;
// a tools/call by a Caller; and one by HTTP on loopback. It compares their p50: bytes to echo is
// the cost of the site, and Caller to echo that of both sides. B/op and allocs/op are of all four,
// on both sides.
func BenchmarkToolsCall(b *testing.B) {
	for transport, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			b.Run(transport+"/"+codec.ContentType(), func(b *testing.B) { benchmark(b, listen, codec) })
		}
	}
}

func benchmark(b *testing.B, listen string, codec rpc.Codec) {
	host := func(o p2p.Options) *p2p.Host {
		o.Key = identity.New()
		h, err := p2p.New(o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { h.Close() })
		return h
	}
	site, other := host(p2p.Options{Listen: []string{listen}}), host(p2p.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	b.Cleanup(func() { cancel(); serving.Wait() })
	service := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return a }), Token: token, Tools: []tools.Agent{reader{}}})
	dispatcher := rpc.NewDispatcher(mcp.New(ctx, service, tools.New(service, service), mcp.Implementation{Name: "agentsite", Version: "v0.1.0"}, "").Methods())
	serving.Go(func() {
		site.Serve(ctx, p2p.Handlers{
			Key: owner{}.Key,
			Stream: func(ctx context.Context, rw io.ReadWriteCloser, from func() rpc.Sender, t rpc.Terms) error {
				return (&rpc.Stream{Dispatcher: dispatcher, Sender: from, Terms: t}).Serve(ctx, rw)
			},
		})
	})
	p2p.Served(b, site)
	id, err := identity.Parse(site.ID().String())
	if err != nil {
		b.Fatal(err)
	}
	c := other.Caller(id, func() []string { return []string{site.Addrs()[0].String()} }, codec)
	calling := func(c rpc.Caller) func() {
		next := uint64(0)
		return func() {
			next++
			if _, err := c.Call(ctx, inboundConn(next), nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	byCaller, byHTTP := calling(c), calling(overHTTP(b, ctx, &serving, dispatcher, codec))
	byCaller()
	byHTTP()
	protocols := map[rpc.Codec]protocol.ID{rpc.CBOR: "/agentsite/mcp/1/cbor", rpc.JSON: "/agentsite/mcp/1/json"}
	var request bytes.Buffer
	if err := rpc.EncodeRequest(codec, &request, inboundConn(1)); err != nil {
		b.Fatal(err)
	}
	if codec == rpc.JSON {
		request.WriteByte('\n')
	}
	said, heard := request.Bytes(), make([]byte, 4<<10)
	s, err := other.NewStream(ctx, site.ID(), protocols[codec])
	if err != nil {
		b.Fatal(err)
	}
	defer s.Reset()
	s.SetReadDeadline(time.Now().Add(time.Second)) // by then all of it has come
	if _, err := s.Write(said); err != nil {
		b.Fatal(err)
	}
	n, _ := io.ReadFull(s, heard)
	s.SetReadDeadline(time.Time{})
	if heard = heard[:n]; !bytes.Contains(heard, []byte("greenhouse/temperature")) {
		b.Fatalf("%q", heard)
	}
	echo := echoing(b, ctx, site, other, said, heard)
	exchange(b, echo, said, heard)

	var took [4][]time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for i, do := range []func(){func() { exchange(b, echo, said, heard) }, func() { exchange(b, s, said, heard) }, byCaller, byHTTP} {
			begun := time.Now()
			do()
			took[i] = append(took[i], time.Since(begun))
		}
	}
	var p50 [4]float64
	for i, all := range took {
		slices.Sort(all)
		p50[i] = float64(all[len(all)/2])
	}
	b.ReportMetric(p50[0], "echo-p50-ns")
	b.ReportMetric(p50[1]/p50[0], "x-echo")
	b.ReportMetric(p50[2]/p50[0], "caller-x-echo")
	b.ReportMetric(p50[2]/p50[3], "caller-x-http")
	b.ReportMetric(float64(len(said)+len(heard)), "bytes/call")
}

func exchange(b *testing.B, s network.Stream, said, heard []byte) {
	if _, err := s.Write(said); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(s, heard); err != nil {
		b.Fatal(err)
	}
}

// echoing is a stream on which so many bytes are answered with so many.
func echoing(b *testing.B, ctx context.Context, site, other *p2p.Host, said, heard []byte) network.Stream {
	says, hears := len(said), len(heard)
	site.SetStreamHandler("/echo", func(s network.Stream) {
		in, out := make([]byte, says), make([]byte, hears)
		for {
			if _, err := io.ReadFull(s, in); err != nil {
				s.Reset()
				return
			}
			s.Write(out)
		}
	})
	s, err := other.NewStream(ctx, site.ID(), "/echo")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Reset() })
	return s
}

// owner is every caller.
type owner struct{}

func (owner) Key(string) (principal.Principal, error)          { return node.LocalOwner, nil }
func (owner) Bearer(string, bool) (principal.Principal, error) { return node.LocalOwner, nil }

// overHTTP calls the same site by HTTP.
func overHTTP(b *testing.B, ctx context.Context, serving *sync.WaitGroup, dispatcher *rpc.Dispatcher, codec rpc.Codec) rpc.Caller {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	handler := web.Handler(web.Options{
		Hosts: []string{ln.Addr().String()}, Routes: []web.Route{web.MCP(dispatcher, nil)}, Callers: owner{},
	})
	serving.Go(func() { web.Serve(ctx, ln, handler) })
	transport := &http.Transport{DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &web.Client{URL: fmt.Sprintf("http://%v/mcp", ln.Addr()), Token: token, Codec: codec, HTTP: &http.Client{Transport: transport}}
}
