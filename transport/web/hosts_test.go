package web

import (
	"net"
	"slices"
	"strings"
	"testing"
)

func TestAllowedHosts(t *testing.T) {
	for _, tt := range []struct {
		listens string
		own     []string
		want    string
	}{
		{"127.0.0.1:8473", nil, "127.0.0.1:8473 [::1]:8473 127.0.0.1:8473 agentsite.localhost:8473 localhost:8473"},
		{"[::1]:8473", nil, "127.0.0.1:8473 [::1]:8473 [::1]:8473 agentsite.localhost:8473 localhost:8473"},
		{"127.0.0.2:9", []string{"greenhouse.local", "fd00::1"}, "127.0.0.1:9 [::1]:9 127.0.0.2:9 agentsite.localhost:9 localhost:9 greenhouse.local:9 [fd00::1]:9"},
		{"127.0.0.1:80", []string{"g"}, "127.0.0.1:80 127.0.0.1 [::1]:80 [::1] 127.0.0.1:80 127.0.0.1 agentsite.localhost:80 agentsite.localhost localhost:80 localhost g:80 g"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tt.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(AllowedHosts(addr, append([]string{"localhost"}, tt.own...)), " "); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.listens, got, tt.want)
		}
	}
}

// TestEndpoints: a site that listens everywhere is reached by its name last, where it has one.
func TestEndpoints(t *testing.T) {
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8474}
	with, without := Endpoints(everywhere, "shed.local"), Endpoints(everywhere, "")
	if with[len(with)-1] != "shed.local:8474" || !slices.Equal(with[:len(with)-1], without) {
		t.Errorf("%q, and without a name %q", with, without)
	}
	if slices.ContainsFunc(without, func(at string) bool { return strings.HasPrefix(at, ":") }) {
		t.Errorf("without a name %q", without)
	}
	one := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8474}
	if got := Endpoints(one, "shed.local"); !slices.Equal(got, []string{"192.0.2.1:8474"}) {
		t.Errorf("at one address: %q", got)
	}
}
