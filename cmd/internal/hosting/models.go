package hosting

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"agentsite/agents/llm"
	"agentsite/agents/llm/chat"
	"agentsite/node/state"
)

// openModels returns what language models need of the site. Where it is not known what they have used
// up, they are sent nothing.
func openModels(o Options) (llm.World, error) {
	stored, err := state.ReadUntrusted(o.Folder.Path(state.SpentFile), llm.MaxLedger)
	if err != nil {
		return llm.World{}, o.Folder.Unusable(err)
	}
	ledger, damage := llm.ReadLedger(stored, o.Access.Now, func(text []byte) error {
		return state.WriteAtomic(o.Folder.Path(state.SpentFile), text, 0o600)
	})
	if damage != nil {
		slog.Error("language models are sent nothing", "err", fmt.Errorf("%w; remove %s, and their budgets begin anew", damage, o.Folder.Path(state.SpentFile)))
	}
	return llm.World{Hosted: o.Node, Now: o.Access.Now, Ledger: ledger, Queues: new(chat.Queues), Secret: func(name string) (string, error) { return state.Secret(filepath.Dir(o.File), name) }}, nil
}
