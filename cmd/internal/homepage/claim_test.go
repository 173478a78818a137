package homepage

import (
	"context"
	"strings"
	"testing"

	"agentsite/device"
)

// boards are sites that can be claimed by "right".
type boards struct {
	claimed []string
	leave   func() // ends the page's call while a site is claimed
}

func (b *boards) Near(context.Context) ([]Board, error) { return []Board{{"shed", "did:key:z"}}, nil }

func (b *boards) Address(did, words string) (address, key string, err error) {
	if words != "right" {
		return "", "", device.Faultf(device.Invalid, "wrong")
	}
	return "agentsite://z/right/at", "did:key:z", nil
}

func (b *boards) Claim(ctx context.Context, address string) (string, error) {
	if b.leave != nil {
		b.leave()
	}
	if ctx.Err() == nil {
		b.claimed = append(b.claimed, address)
	}
	return "shed", ctx.Err()
}

// TestClaim: a site is claimed once the person allowed it, who sees its key and address.
func TestClaim(t *testing.T) {
	h := newHome(t)
	b := &h.boards
	claim := func(words string) string {
		t.Helper()
		return h.post(t.Context(), homePath, `{"jsonrpc":"2.0","id":1,"method":"board/claim","params":{"did":"did:key:z","words":"`+
			words+`"}}`, nil)
	}
	if says := claim("wrong"); !strings.Contains(says, `"error"`) || len(h.acts) != 0 {
		t.Errorf("%s, asked %v", says, h.acts)
	}
	h.says = device.Faultf(device.Denied, "no")
	if says := claim("right"); !strings.Contains(says, `"error"`) || len(b.claimed) != 0 {
		t.Errorf("%s, claimed %q", says, b.claimed)
	}
	h.says = nil
	if says := claim("right"); !strings.Contains(says, `"name":"shed"`) || len(b.claimed) != 1 {
		t.Errorf("%s, claimed %q", says, b.claimed)
	}
	a := h.acts[len(h.acts)-1]
	if len(h.acts) != 2 || a.Site != "did:key:z" || !strings.Contains(string(a.Params), b.claimed[0]) {
		t.Errorf("asked %v", h.acts)
	}
	h.token = ""
	if says := claim("right"); strings.Contains(says, "result") || len(b.claimed) != 1 {
		t.Errorf("without a session: %s", says)
	}
}

// TestClaimAndLeave: a claim that was allowed goes on when the page leaves.
func TestClaimAndLeave(t *testing.T) {
	h := newHome(t)
	ctx, leave := context.WithCancel(t.Context())
	h.leave = leave
	h.post(ctx, homePath, `{"jsonrpc":"2.0","id":1,"method":"board/claim","params":{"did":"did:key:z","words":"right"}}`, nil)
	if ctx.Err() == nil || len(h.claimed) != 1 {
		t.Errorf("%v, claimed %q", ctx.Err(), h.claimed)
	}
}
