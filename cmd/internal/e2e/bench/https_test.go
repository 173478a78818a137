//go:build e2e

package bench

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// BenchmarkHTTPS is a site's memory with HTTPS and with connections that are open, beside
// one without. The runtime gives memory back late, so that a peak stays for minutes.
func BenchmarkHTTPS(b *testing.B) {
	resident := func(r *harness.Site, name string) {
		b.ReportMetric(harness.Status(b, r.Cmd.Process.Pid, "VmRSS:")/1024, name+"-resident-MB")
		b.ReportMetric(harness.Status(b, r.Cmd.Process.Pid, "RssAnon:")/1024, name+"-anonymous-MB")
	}
	const open = 16
	none, r, ann := harness.StartHTTPSAt(b, harness.TempDir(b), "none"), harness.StartHTTPS(b, harness.TempDir(b)), harness.NewPerson(b)
	i := r.Invitation(b)
	time.Sleep(5 * time.Second) // let the starts settle
	resident(none, "none")
	resident(r, "https")
	ann.MustCLI(b, "claim", i.String())
	for range open {
		if _, err := harness.DialAs(b, ann.Key(b), i).Tools(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	resident(r, fmt.Sprint("https-", open, "-open"))
	begun := time.Now()
	c := harness.DialAs(b, ann.Key(b), i)
	if _, err := c.Tools(b.Context()); err != nil {
		b.Fatal(err)
	}
	first := time.Since(begun)
	begun = time.Now()
	const calls = 200
	for range calls {
		if _, err := c.Tools(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-call-ms")
	b.ReportMetric(float64(time.Since(begun).Microseconds())/1000/calls, "next-call-ms")
	b.ReportMetric(0, "ns/op")
}

// TestHalfHandshakes: more connections that begin TLS and go no further than a site keeps
// neither keep its owner out nor fill its memory.
func TestHalfHandshakes(t *testing.T) {
	r, i := harness.StartUnclaimed(t, harness.TempDir(t))
	ann := harness.NewPerson(t)
	ann.MustCLI(t, "claim", i.String())
	before := harness.Status(t, r.Cmd.Process.Pid, "VmRSS:")
	for range 300 {
		conn, err := net.Dial("tcp", i.Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
	}
	begun := time.Now()
	ann.MustCLI(t, "points", "--site", "shed")
	took := time.Since(begun)
	grown := (harness.Status(t, r.Cmd.Process.Pid, "VmRSS:") - before) / 1024
	t.Logf("the owner was answered in %v; 300 half handshakes take %.1f MB", took.Round(time.Millisecond), grown)
	if took > 8*time.Second || grown > 16 {
		t.Error("that is too much")
	}
}
