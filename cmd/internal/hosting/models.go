package hosting

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm"
	"agentsite/agents/llm/chat"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node/bundle"
	"agentsite/node/config"
	"agentsite/node/imports"
	"agentsite/node/state"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// openModels returns the World of language models. If their spent budgets are unknown, they are
// sent nothing.
func openModels(o Options, drafts func() *imports.Store) (*llm.World, error) {
	stored, err := o.Folder.ReadAtMost(state.SpentFile, llm.MaxLedger)
	if err != nil {
		return nil, o.Folder.Unusable(err)
	}
	ledger, damage := llm.ReadLedger(stored, o.Access.Now, func(text []byte) error {
		return state.WriteAtomic(o.Folder.Path(state.SpentFile), text, 0o600)
	})
	if damage != nil {
		slog.Error("language models are sent nothing", "err", fmt.Errorf("%w; remove %s, and their budgets begin anew", damage, o.Folder.Path(state.SpentFile)))
	}
	draft := func(ctx context.Context, self agents.Principal, asker, name, may, definition string) error {
		_, err := drafts().Propose(ctx, self, asker, name, may, definition, func(c bundle.Content) ([]byte, error) {
			now, _ := o.Access.Now()
			c.Created = now.Unix()
			return bundle.Seal(o.Key, c)
		})
		return err
	}
	decode := func(args jsontext.Value, into any) error { return rpc.RawJSON(args).DecodeStrict(into) }
	return &llm.World{StandIn: o.Confined, Draft: draft, Decode: decode, Hosted: o.Node,
		Now:    func() (time.Time, bool) { t, sure := o.Access.Now(); return rule.Local(t), sure },
		Ledger: ledger, Queues: new(chat.Queues), Secret: secrets(o.File)}, nil
}

// secrets returns what reads the files of secrets beside a configuration.
func secrets(file string) func(string) (string, error) {
	return func(name string) (string, error) { return state.Secret(filepath.Dir(file), name) }
}

// Model returns a language model of a configuration, to be checked without a site.
func Model(cfg *config.Site, file, name string) (*llm.Agent, error) {
	var names []string
	for i := range cfg.Agents {
		a := &cfg.Agents[i]
		if a.Kind != llm.KindName {
			continue
		}
		if a.Name == name {
			m := llm.New(&llm.World{Secret: secrets(file)})
			err := a.Decode(m)
			if err == nil {
				_, err = m.Define()
			}
			return m, err
		}
		names = append(names, a.Name)
	}
	return nil, state.Mistake{Err: fmt.Errorf("there is no language model %q in the configuration%s", name, device.Suggest(name, names, "agent"))}
}
