package owner

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"agentsite/agents/agent"
	"agentsite/agents/rule/trial"
	"agentsite/node/access"
	"agentsite/node/imports"
)

// TestDocumented: docs/wire.md has each method, and each member of what is sent and of the answers of this
// package, so that a client can be written from it.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	all := (&Site{}).Methods()
	for _, name := range []string{string(ChallengeMethod), string(ProveMethod), string(ReclaimMethod)} {
		all[name] = nil
	}
	for name := range all {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not in docs/wire.md", name)
		}
	}
	for _, of := range []any{
		Name{}, waitingCalls{}, Request{}, AccessParams{}, Access{}, Owner{}, Granted{}, NewToken{}, MadeToken{}, Signed{}, Reached{}, TimeNow{}, MadeRecovery{}, Recovery{},
		challenge{}, claimed{}, Routes{}, Carrier{}, Health{}, Wanted{}, foundAll{}, Found{}, Import{}, PastReading{}, imported{},
		access.Proof{}, access.Answer{}, trial.Request{}, agent.Acceptance{}, imports.Request{}, imports.Acceptance{},
	} {
		for f := range reflect.TypeOf(of).Fields() {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+member+"`") && !strings.Contains(string(text), "`"+member+": ") {
				t.Errorf("%T: the member %s is not in docs/wire.md", of, member)
			}
		}
	}
}
