package mqtt

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
)

// TestLateWill: a site that is there says so again where somebody else said that it is gone, as a broker does that
// publishes the will of an earlier connection late.
func TestLateWill(t *testing.T) {
	r := newRig(t, all, nil, nil)
	_, told := r.last(r.status())
	r.send(r.status(), offline, 0)
	r.until("it is told again", func() bool { s, n := r.last(r.status()); return s == online && n > told })
}

// TestPermittedLength: an output is held by leases as long as the permission allows where that is less.
func TestPermittedLength(t *testing.T) {
	r := newRig(t, "read greenhouse, set greenhouse/heater max 1s", nil, func(a *Agent) { a.lease = 0 })
	r.send(r.topic("heater/set"), "ON", 0)
	r.is("heater", on)
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if r.site.Value("greenhouse/heater") != on {
			t.Fatal("the lease is not renewed")
		}
	}
}

// TestFloodOfBytes: few messages that are long are too much as well.
func TestFloodOfBytes(t *testing.T) {
	r := newRig(t, all, nil, func(a *Agent) { a.retry = time.Minute })
	long := strings.Repeat(" ", 200<<10)
	for range 10 {
		r.send(r.discoveryTopic(), long, 0)
	}
	r.until("it waits", func() bool { return strings.Contains(r.Report(t.Context()).Says, "messages in a second") })
}

// TestCertificate: no words of a certificate, which anybody on the way can show, are in what the agent says.
func TestCertificate(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"evil words"}, NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(nil, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listens, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if c, err := listens.Accept(); err == nil {
			c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	a := Kind(World{ID: "x"}).New().(*Agent)
	a.Broker = "mqtts://" + strings.Replace(listens.Addr().String(), "127.0.0.1", "localhost", 1)
	if err := a.connect(t.Context(), agents.Principal{}, nil); err == nil || strings.Contains(err.Error(), "evil") {
		t.Error(err)
	}
	listens.Close()
	<-ended
}
