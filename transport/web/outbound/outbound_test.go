package outbound

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAddresses: only public addresses are dialled, and what the owner wrote.
func TestAddresses(t *testing.T) {
	for text, public := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "198.18.0.1": false, "192.0.0.8": false, "203.0.113.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "ff02::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "::127.0.0.1": false,
	} {
		a := netip.MustParseAddr(text)
		if err := check(a, nil); (err == nil) != public {
			t.Errorf("%s: %v", text, err)
		}
		if err := check(a, []netip.Addr{a}); err != nil {
			t.Errorf("%s was named: %v", text, err)
		}
	}
}

// TestQuiet: what answers something else than HTTP writes no words of its own into the error, and neither does the
// certificate of another host. The URL is not there, either.
func TestQuiet(t *testing.T) {
	listens, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listens.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1<<10))
			fmt.Fprint(c, "HTTP/1.1 evil\r\n\r\n")
			c.Close()
		}
	}()
	_, err = Get(t.Context(), Client(time.Minute, "127.0.0.1"), "http://"+listens.Addr().String()+"/secret", 100)
	if err == nil || strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	listens.Close()
	<-ended
}

// TestClient: an address of this machine is asked where it was named, and leads nowhere else.
func TestClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/long":
			w.Write(make([]byte, 101))
		case "/mebibyte":
			w.Write(make([]byte, 1<<20))
		case "/slow":
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Write(make([]byte, 100))
		}
	}))
	defer server.Close()
	named := Client(time.Minute, "127.0.0.1")
	if b, err := Get(t.Context(), named, server.URL, 100); err != nil || len(b) != 100 {
		t.Error(len(b), err)
	}
	for path, says := range map[string]string{"/to": "302", "/long": "longer than 100", "/mebibyte": "longer than 100"} {
		if _, err := Get(t.Context(), named, server.URL+path, 100); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Get(t.Context(), Client(100*time.Millisecond, "127.0.0.1"), server.URL+"/slow", 100); err == nil {
		t.Error("an answer without an end came")
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err := Get(t.Context(), Client(time.Minute), strings.Replace(server.URL, "127.0.0.1", host, 1), 100)
		if err == nil || !strings.Contains(err.Error(), "private network") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestRetryAfter: an answer asks to wait in seconds, or until a date by its own clock.
func TestRetryAfter(t *testing.T) {
	const noon, later = "Fri, 27 Nov 2026 12:00:00 GMT", "Fri, 27 Nov 2026 12:01:30 GMT"
	for _, tt := range []struct {
		text, date string
		want       time.Duration
		ok         bool
	}{
		{"120", "", 2 * time.Minute, true}, {"0", "", 0, true}, {later, noon, 90 * time.Second, true},
		{later, "", 0, false}, {"", noon, 0, false}, {"-1", noon, 0, false}, {"99999999999", "", 0, false},
	} {
		wait, ok := RetryAfter(http.Header{"Retry-After": {tt.text}, "Date": {tt.date}})
		if ok != tt.ok || ok && wait != tt.want {
			t.Errorf("%q at %q: %v %t", tt.text, tt.date, wait, ok)
		}
	}
}
