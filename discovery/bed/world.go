package bed

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// World is an internet for a test: machines on addresses that look public, and homes
// behind routers. The addresses are real ones of somebody, and lead nowhere but to here:
// libraries do not believe in those that are meant for tests.
type World struct {
	*Bed
	public int
}

// NewWorld makes one with nobody in it.
func NewWorld(t testing.TB) *World {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		missing(t, "the Debian package nftables is needed for routers: %v", err)
	}
	return &World{Bed: New(t)}
}

// Public adds a machine that everybody reaches. It returns its name and its address.
func (w *World) Public() (host, ip string) {
	w.t.Helper()
	ip = w.address()
	return w.Host(ip + "/24"), ip
}

func (w *World) address() string {
	w.public++
	return fmt.Sprintf("5.5.5.%d", w.public)
}

// NAT is the way in which a home's router maps a port.
type NAT string

const (
	// Preserving keeps the port where it can, as most do: holes can be punched.
	Preserving NAT = "masquerade"
	// Symmetric takes another for each connection: nobody can tell which.
	Symmetric NAT = "masquerade random,fully-random"
)

// Home is a network behind a router, which permits connections from inside and their return
// packets. All homes have the same addresses inside.
type Home struct {
	w      *World
	Router string // its name
	IP     string // its address on the internet

	inside int
}

// Gateway is a router's address inside.
const Gateway = "192.168.1.1"

// Home adds one with nobody in it.
func (w *World) Home(kind NAT) *Home {
	w.t.Helper()
	h := &Home{w: w, IP: w.address(), inside: 1}
	h.Router = w.Host(h.IP + "/24")
	w.IP(h.Router, "link add lan type bridge mcast_snooping 0", "addr add "+Gateway+"/24 dev lan", "link set lan up")
	w.run(h.Router, "", "sysctl", "-qw", "net.ipv4.ip_forward=1")
	h.rules(`table ip nat {
	chain outward {
		type nat hook postrouting priority srcnat;
		oifname "eth0" ` + string(kind) + `
	}
}
table ip wall {
	chain through {
		type filter hook forward priority filter; policy drop;
		iifname "lan" accept
		ct state established,related accept
		ct status dnat accept
	}
	chain inward {
		type filter hook input priority filter; policy accept;
		iifname "eth0" ct state new,invalid drop
	}
}`)
	return h
}

// Host adds a machine to the home and returns its name.
func (h *Home) Host() string {
	h.w.t.Helper()
	h.inside++
	host, port := h.w.Host(), fmt.Sprintf("port%d", h.inside)
	h.w.IP(h.Router, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, host), "link set "+port+" master lan up")
	h.w.IP(host, fmt.Sprintf("addr add 192.168.1.%d/24 dev eth0", h.inside), "link set eth0 up", "route add default via "+Gateway)
	return host
}

// Restart makes the router forget its NAT mappings.
func (h *Home) Restart() {
	h.w.t.Helper()
	h.w.IP(h.Router, "link set eth0 down", "link set eth0 up")
}

// Cut takes the home's line to the internet away, or gives it back.
func (h *Home) Cut(cut bool) {
	h.w.t.Helper()
	h.w.IP(h.Router, "link set eth0 "+map[bool]string{true: "down", false: "up"}[cut])
}

// Move gives the home another address on the internet, as providers do at night.
func (h *Home) Move() {
	h.w.t.Helper()
	was := h.IP
	h.IP = h.w.address()
	h.w.IP(h.Router, "addr del "+was+"/24 dev eth0", "addr add "+h.IP+"/24 dev eth0")
}

// NoUDP makes the router block outbound UDP, as offices do.
func (h *Home) NoUDP() {
	h.w.t.Helper()
	h.rules("insert rule ip wall through meta l4proto udp drop")
}

// Forward opens a port of the router for an address and a port inside, as an owner can.
func (h *Home) Forward(port int, inside string) {
	h.w.t.Helper()
	h.rules(fmt.Sprintf(`table ip nat {
	chain forwarded {
		type nat hook prerouting priority dstnat;
		iifname "eth0" meta l4proto { tcp, udp } th dport %d dnat to %s
	}
}`, port, inside))
}

// Sent is how many packets the home has sent to an address since it was asked first.
func (h *Home) Sent(to string) (packets int) {
	h.w.t.Helper()
	counted := regexp.MustCompile(regexp.QuoteMeta("daddr "+to+" counter packets ") + `([0-9]+)`)
	m := counted.FindStringSubmatch(h.w.run(h.Router, "", "nft", "list", "table", "ip", "wall"))
	if m == nil {
		h.rules("insert rule ip wall through ip daddr " + to + " counter")
		return 0
	}
	packets, err := strconv.Atoi(m[1])
	if err != nil {
		h.w.t.Fatal(err)
	}
	return packets
}

func (h *Home) rules(nft string) {
	h.w.t.Helper()
	h.w.run(h.Router, nft, "nft", "-f", "-")
}

// run runs a command on a host with input, and returns its output.
func (b *Bed) run(host, input string, argv ...string) string {
	b.t.Helper()
	argv = On(host, argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%q: %v\n%s%s", argv, err, input, out)
	}
	return string(out)
}
