//go:build e2e && linux

package lan

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// TestLANDoctor: doctor says on which interfaces a site is found, and why it is not.
func TestLANDoctor(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	host := b.Host("10.77.0.1/24")
	bed.New(t).Cable(host, 1, "fd77::1/64") // on another network, from which nothing comes round
	run := func(args ...string) string {
		t.Helper()
		argv := bed.On(host, args...)
		out, _ := exec.Command(argv[0], argv[1:]...).CombinedOutput() // a problem found ends it with 1
		return string(out)
	}
	says := func(r *harness.Site, want ...string) {
		t.Helper()
		out := run(harness.Program, "doctor", "--data", r.Folder, "--config", r.Folder+"/agentsite.yaml")
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("doctor does not say %q:\n%s", w, out)
			}
		}
	}
	r := harness.StartOn(t, host, harness.TempDir(t), "shed")
	begun := time.Now()
	says(r, "note: network: ", "eth0, eth1")
	t.Logf("doctor takes %v", time.Since(begun).Round(time.Millisecond))
	if _, err := exec.LookPath("nft"); err != nil {
		t.Logf("SKIPPED: %v: the Debian package nftables is needed to see that a firewall is noticed", err)
	} else {
		for what, want := range map[string][]string{
			"iifname eth1 udp dport 5353": {"problem: eth1: ", "UDP port 5353", "on eth0"},
			"udp dport 5353":              {"problem: eth0: ", "problem: eth1: "},
		} {
			if out := run("nft", "table inet wall { chain in1 { type filter hook input priority 0; "+what+" drop; }; }"); out != "" {
				t.Fatal(out)
			}
			says(r, want...)
			run("nft", "delete table inet wall")
		}
	}
	b.IP(host, "link set eth0 down", "link set eth1 down")
	says(r, "problem: network: ")
	r.Stop(t)

	for config, want := range map[string]string{
		"http: { https: none }":                                "HTTPS is off",
		"http: { https: \"127.0.0.1:8474\" }":                  "https://127.0.0.1:8474",
		"http: { https: \":8474\" }\ndiscovery: { mdns: off }": "discovery is off",
	} {
		https := strings.Trim(strings.Fields(config)[3], `"`)
		config := "site: { name: shed }\n" + config + "\n"
		r := harness.StartIn(t, harness.TempDir(t), config, nil, append(bed.On(host, harness.Program), "run", "--listen-https", https)...)
		says(r, "note: network: ", want)
		r.Stop(t)
	}
}
