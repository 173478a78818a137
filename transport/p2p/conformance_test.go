package p2p

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestStockHost: a host as the library itself puts it together calls ours and is called,
// by TCP and by QUIC.
func TestStockHost(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		if codec != rpc.JSON {
			return // it is of the streams alone
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ours := newHost(t, Options{}, listen)
		serve(t, ours, nil)
		stock, err := libp2p.New(libp2p.ListenAddrStrings(listen))
		if err != nil {
			t.Fatal(err)
		}
		defer stock.Close()

		if err := stock.Connect(ctx, peer.AddrInfo{ID: ours.ID(), Addrs: ours.Addrs()}); err != nil {
			t.Fatal(err)
		}
		s, err := stock.NewStream(ctx, ours.ID(), protocolOf(codec))
		if err != nil {
			t.Fatal(err)
		}
		s.SetDeadline(time.Now().Add(patience))
		io.WriteString(s, `{"jsonrpc":"2.0","id":1,"method":"who"}`+"\n")
		answer, err := bufio.NewReader(s).ReadString('\n')
		if want := `{"jsonrpc":"2.0","id":1,"result":"` + stock.ID().String() + "\"}\n"; answer != want || err != nil {
			t.Errorf("%s, %v", answer, err)
		}
		s.Reset()

		caller := newHost(t, Options{})
		stock.SetStreamHandler(protocolOf(codec), func(s network.Stream) {
			defer s.Close()
			if _, err := bufio.NewReader(s).ReadString('\n'); err == nil {
				io.WriteString(s, `{"jsonrpc":"2.0","id":7,"result":"stock"}`+"\n")
			}
		})
		id, err := idOf(stock.ID())
		if err != nil {
			t.Fatal(err)
		}
		c := caller.Caller(id, func() []string { return []string{stock.Addrs()[0].String()} }, codec)
		res, err := c.Call(ctx, ask(7, "echo", nil), nil)
		if got := text(t, res, err); got != `"stock"` {
			t.Error(got)
		}
	})
}
