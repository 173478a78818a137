package tasktest

import (
	"testing"

	"agentsite/agents"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHost(t *testing.T) {
	Run(t, func(t *testing.T) map[Who]As {
		h, all := New(t), make(map[Who]As)
		for _, who := range Everybody {
			all[who] = As{h, agents.Principal{ID: string(who)}}
		}
		return all
	})
}
