package web

import (
	"net"
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
