package access

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"

	"pgregory.net/rapid"
)

// How much is tried: a part of what make e2e does, and that of what make soak does.
var (
	chains   = flag.Int("chains", 30_000, "chains through the algebra")
	attacks  = flag.Int("attacks", 1_000, "hostile chains with signatures")
	schedule = flag.Int("schedules", 100, "schedules of calls against a rate")
)

// picker draws a number below n: from rapid, which finds the smallest failure, from
// chance for large counts, or from a fuzzer's bytes.
type picker func(n int) int

func fromRapid(t *rapid.T) picker {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }
}

func fromBytes(b []byte) picker {
	return func(n int) int {
		if len(b) == 0 {
			return 0
		}
		v := int(b[0]) % n
		b = b[1:]
		return v
	}
}

func one[T any](pick picker, from ...T) T { return from[pick(len(from))] }

// some draws a part of a list, in order.
func some(pick picker, from ...string) (list []string) {
	for _, s := range from {
		if pick(3) == 0 {
			list = append(list, s)
		}
	}
	return list
}

// The world of the model: few names, so that much meets.
var (
	worldTools  = []string{"emergency_stop", "list_points", "read_history", "read_points", "release_output", "set_level", "site_status", "switch_output", "water"}
	worldPoints = []string{"air/humidity", "air/temperature", "fan/speed", "fan2/speed", "lamp/on"}
	patterns    = []string{"*", "air", "air/humidity", "air/temperature", "fan", "fan/sp", "fan/speed", "lamp", "lamp/on"} // in order
)

func drawPermission(pick picker) (p Permission) {
	if v := pick(len(actions) + 2); v < len(actions) {
		p.Tools = actions[v].tools
	} else {
		p.Tools = some(pick, worldTools...)
	}
	if len(p.Tools) == 0 {
		p.Tools = []string{"set_level"}
	}
	if p.asks() { // of agents: no limits but how often, and a confirmation
		if p.Points = some(pick, "*", "air", "attic", "fan"); len(p.Points) == 0 {
			p.Points = []string{"air"}
		}
		if pick(3) == 0 {
			p.Rate = &Rate{Calls: 1, Per: 60}
		}
		p.Confirm = pick(4) == 0
		return p
	}
	if p.Points = some(pick, patterns...); pick(4) == 0 {
		p.Points = []string{"*"}
	}
	if pick(3) == 0 {
		low := float64(pick(5) * 20)
		p.Range = &Range{Min: low - 0.5, Max: low + float64(pick(4)*30)}
	}
	if pick(3) == 0 {
		p.Lease = one[Seconds](pick, 1, 30, 60, 600, 86400)
	}
	if pick(3) == 0 {
		p.Rate = &Rate{Calls: uint16(1 + pick(3)), Per: one[Seconds](pick, 1, 60, 3600, 5400)}
	}
	p.Confirm = pick(4) == 0
	return p
}

func drawBlock(pick picker) (b Block) {
	for range 1 + pick(3) {
		b.Permissions = append(b.Permissions, drawPermission(pick))
	}
	return b
}

func drawAsk(pick picker) (a agents.Ask) {
	a.Tool = one(pick, append(worldTools, "capture_image", "ask_agent", "", "*")...)
	a.Points = some(pick, append(worldPoints, "air", "*", "fan/", "attic/heater")...)
	a.Effect = one(pick, agents.Acts, agents.Acts, agents.Reads, agents.Returns)
	if pick(3) > 0 {
		a.Value = device.Number(float64(pick(12) * 10))
	}
	a.For = one(pick, 0, time.Second, time.Minute, 61*time.Second, time.Hour, 1000*time.Hour)
	return a
}

// modelAllows is the algebra once more, from its description. For every block and
// point it lists by name what each part is about, takes the first, and holds the ask
// against what that says. It shares nothing with the code but the types.
func modelAllows(blocks []Block, a agents.Ask) bool {
	about := func(p Permission, point string) bool {
		if !strings.Contains(" "+strings.Join(p.Tools, " ")+" ", " "+a.Tool+" ") || a.Tool == "" {
			return false
		}
		if point == "" {
			all := len(p.Points) == 0
			for _, pattern := range p.Points {
				all = all || pattern == "*"
			}
			return all || a.Effect == agents.Reads
		}
		for _, pattern := range p.Points {
			if a.Tool == "ask_agent" {
				if pattern == point || strings.HasPrefix(point, pattern+"/") || pattern == "*" && !strings.ContainsAny(point, "*/") {
					return true
				}
				continue
			}
			switch {
			case pattern == "*" && strings.Count(point, "/") == 1:
				return true
			case pattern == point && strings.Count(point, "/") == 1:
				return true
			case strings.HasPrefix(point, pattern+"/"):
				return true
			}
		}
		return false
	}
	points := a.Points
	if len(points) == 0 {
		points = []string{""}
	}
	for _, b := range blocks {
		for _, point := range points {
			var decides *Permission
			for i := len(b.Permissions) - 1; i >= 0; i-- {
				if about(b.Permissions[i], point) {
					decides = &b.Permissions[i]
				}
			}
			if decides == nil {
				return false
			}
			if a.Effect != agents.Acts {
				continue
			}
			if r := decides.Range; r != nil && (a.Value.IsZero() || a.Value.Number() < r.Min || a.Value.Number() > r.Max) {
				return false
			}
			if decides.Lease != 0 && a.For > time.Duration(decides.Lease)*1e9 {
				return false
			}
		}
	}
	return true
}

// judge holds the code's answer against the model's, and the limits that it gives
// against the model's answers to asks at and beyond them.
func judge(blocks []Block, a agents.Ask) string {
	g := &Grant{Blocks: blocks, ids: make([]Hash, len(blocks))}
	for i := range blocks {
		g.ids[i] = Hash{byte(i + 1)}
	}
	l, charges, err := g.allow(a)
	if want := modelAllows(blocks, a); (err == nil) != want {
		return "the model says otherwise"
	}
	if err != nil {
		if device.AsFault(err).Kind != device.Denied {
			return "it is refused without a reason"
		}
		return ""
	}
	for n := range blocks { // what a chain allows, all that it was passed on from does
		parent := &Grant{Blocks: blocks[:n+1], ids: g.ids[:n+1]}
		wider, fewer, err := parent.allow(a)
		switch {
		case err != nil:
			return "more is allowed than was passed on"
		case wider.Lease != 0 && (l.Lease == 0 || l.Lease > wider.Lease):
			return "a lease is longer than what was passed on"
		case wider.Range != nil && (l.Range == nil || l.Range.Min < wider.Range.Min || l.Range.Max > wider.Range.Max):
			return "a range is wider than what was passed on"
		case wider.Confirm && !l.Confirm:
			return "a confirmation was lost"
		case len(fewer) > len(charges):
			return "a rate was lost"
		}
	}
	if a.Effect != agents.Acts {
		return ""
	}
	if l.Lease > 0 {
		at, beyond := a, a
		at.For, beyond.For = l.Lease, l.Lease+1
		if !modelAllows(blocks, at) || modelAllows(blocks, beyond) {
			return "the lease is not the longest that is allowed"
		}
	}
	if l.Range != nil {
		for _, v := range []float64{l.Range.Min, l.Range.Max} {
			at := a
			at.Value = device.Number(v)
			if !modelAllows(blocks, at) {
				return "the range is wider than what is allowed"
			}
		}
		low, high := l.Range.Min-0.001, l.Range.Max+0.001
		for _, v := range []float64{low, high} {
			beyond := a
			beyond.Value = device.Number(v)
			if modelAllows(blocks, beyond) {
				return "the range is narrower than what is allowed"
			}
		}
	}
	return ""
}

func drawChain(pick picker) (blocks []Block) {
	for range 1 + pick(maxBlocks) {
		blocks = append(blocks, drawBlock(pick))
	}
	return blocks
}

func TestAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := fromRapid(t)
		blocks := drawChain(pick)
		for range 5 {
			if a := drawAsk(pick); judge(blocks, a) != "" {
				t.Fatalf("%s: %+v of %+v", judge(blocks, a), a, blocks)
			}
		}
	})
}

// TestManyChains prints its seed, so that a failure can be had again.
func TestManyChains(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	allowed, count := 0, *chains
	for range count {
		blocks, a := drawChain(rng.IntN), drawAsk(rng.IntN)
		if why := judge(blocks, a); why != "" {
			t.Fatalf("%s (seed %d): %+v of %+v", why, seed, a, blocks)
		}
		if modelAllows(blocks, a) {
			allowed++
		}
	}
	t.Logf("%d chains, %d allowed", count, allowed)
	if allowed < count/100 {
		t.Error("too few are allowed for this to mean anything")
	}
}

func FuzzAlgebra(f *testing.F) {
	f.Add([]byte{3, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		pick := fromBytes(b)
		blocks := drawChain(pick)
		if a := drawAsk(pick); judge(blocks, a) != "" {
			t.Fatalf("%s: %+v of %+v", judge(blocks, a), a, blocks)
		}
	})
}

// parties are an owner, the holders of his grants, and a key without a grant. The last two are of
// one mind and have all that was ever sent.
type parties struct {
	keys   []identity.Key
	signed map[Hash]identity.ID // what the honest ones signed
}

const owner, mallory = 0, 4

func newParties() *parties {
	p := &parties{signed: make(map[Hash]identity.ID)}
	for range mallory + 1 {
		p.keys = append(p.keys, identity.New())
	}
	return p
}

func (p *parties) hostile(id identity.ID) bool {
	return id == p.keys[mallory].ID() || id == p.keys[mallory-1].ID()
}

// issue makes an honest chain.
func (p *parties) issue(t *testing.T, pick picker, length int) *Grant {
	holder := p.keys[owner]
	var g *Grant
	for range length {
		b, next := drawBlock(pick), p.keys[pick(mallory)]
		b.Audience = next.ID()
		var err error
		if g == nil {
			g, err = Issue(holder, b)
		} else {
			g, err = g.Delegate(holder, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.signed[g.ID()] = holder.ID()
		holder = next
	}
	return g
}

// attack makes of two honest chains what hostile hands can.
func (p *parties) attack(t *testing.T, pick picker, one, other *Grant) []byte {
	var c, d grantWire
	if codec.Decode(one.bytes, &c) != nil || codec.Decode(other.bytes, &d) != nil {
		t.Fatal("it made what it does not read")
	}
	evil := p.keys[mallory-pick(2)]
	resign := func(i int) {
		g := &Grant{Issuer: c.Issuer}
		for _, s := range c.Blocks[:i] {
			g.ids = append(g.ids, hashBlock(g.lastHash(), s.Block))
		}
		id := hashBlock(g.lastHash(), c.Blocks[i].Block)
		c.Blocks[i].Signature = evil.Sign(grantPurpose, id[:])
	}
	for range 1 + pick(3) {
		if len(c.Blocks) == 0 {
			break
		}
		switch i := pick(len(c.Blocks)); pick(9) {
		case 0:
			c.Blocks = append(c.Blocks[:i:i], c.Blocks[i+1:]...)
		case 1:
			c.Blocks = append(c.Blocks, c.Blocks[i])
		case 2:
			j := pick(len(c.Blocks))
			c.Blocks[i], c.Blocks[j] = c.Blocks[j], c.Blocks[i]
		case 3: // another's block in this one's place
			c.Blocks[i] = d.Blocks[pick(len(d.Blocks))]
		case 4, 5: // another content, signed by somebody
			b := drawBlock(pick)
			b.Audience = evil.ID()
			c.Blocks[i].Block, _ = codec.Encode(b)
			if pick(2) == 0 {
				resign(i)
			}
		case 6:
			c.Issuer = evil.ID()
			resign(0)
		case 7:
			b := drawBlock(pick)
			b.Audience = evil.ID()
			raw, _ := codec.Encode(b)
			c.Blocks = append(c.Blocks, signedBlock{Block: raw})
			resign(len(c.Blocks) - 1)
		case 8:
			resign(i)
		}
	}
	raw, err := codec.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if pick(4) == 0 {
		raw[pick(len(raw))] ^= 1 << pick(8)
	}
	if pick(20) == 0 {
		raw = append(raw[:pick(len(raw))], raw[pick(len(raw)):]...)
	}
	return raw
}

// TestHostileChains: each block of an opened grant was signed by the audience of the block before.
// An honest signer signed this very block after those very blocks.
func TestHostileChains(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 2))
	p := newParties()
	other, opened, count := p.issue(t, rng.IntN, maxBlocks), 0, *attacks
	for n := range count {
		if n%100 == 0 {
			p.signed = make(map[Hash]identity.ID)
			other = p.issue(t, rng.IntN, maxBlocks)
		}
		g, err := ParseGrant(p.attack(t, rng.IntN, p.issue(t, rng.IntN, 1+rng.IntN(maxBlocks)), other))
		if err != nil {
			continue
		}
		opened++
		signer := g.Issuer
		for i, b := range g.Blocks {
			if !p.hostile(signer) && p.signed[g.ids[i]] != signer {
				t.Fatalf("seed %d: block %d was never signed by %v: %+v", seed, i, signer, g)
			}
			signer = b.Audience
		}
	}
	t.Logf("%d chains, %d opened", count, opened)
	if opened < count/100 {
		t.Error("too few are opened for this to mean anything")
	}
}
