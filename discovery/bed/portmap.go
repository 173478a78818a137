package bed

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// PortMap starts a port-mapping server on the router, for "upnp" or "natpmp" (RFC 6886). It is
// miniupnpd, which many routers use.
func (h *Home) PortMap(by string) {
	t := h.w.t
	t.Helper()
	const program = "/usr/sbin/miniupnpd"
	if _, err := os.Stat(program); err != nil {
		missing(t, "the Debian package miniupnpd-nftables is needed for routers that open ports: %v", err)
	}
	h.rules(`table inet opened {
	chain forward { type filter hook forward priority filter; policy accept; }
	chain inward { type nat hook prerouting priority dstnat; }
	chain outward { type nat hook postrouting priority srcnat; }
}`)
	said := map[bool]string{false: "no", true: "yes"}
	folder := t.TempDir()
	settings := filepath.Join(folder, "miniupnpd.conf")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `ext_ifname=eth0
listening_ip=lan
enable_upnp=%s
enable_natpmp=%s
upnp_table_name=opened
upnp_nat_table_name=opened
upnp_forward_chain=forward
upnp_nat_chain=inward
upnp_nat_postrouting_chain=outward
uuid=00000000-0000-4000-8000-000000000001
`, said[by == "upnp"], said[by == "natpmp"]), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := On(h.Router, program, "-d", "-f", settings, "-P", filepath.Join(folder, "pid"))
	cmd := exec.Command(argv[0], argv[1:]...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for serves := false; !serves; serves = strings.Contains(lines.Text(), "istening on port") || strings.Contains(lines.Text(), "istening for NAT-PMP") {
		if !lines.Scan() {
			t.Fatalf("miniupnpd has ended: %v", cmd.Wait())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}
