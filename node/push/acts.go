package push

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// The owners' methods on phones, beside those of node/acts.
const (
	PhonesAct op.Name[op.None, Listed] = "owner/phones" // lists the phones that are told what happens
	TellAct   op.Name[Named, op.None]  = "owner/tell"   // a phone that asks for it, until the next
	UntellAct op.Name[Named, op.None]  = "owner/untell"
)

// Named says which phone a method is about: by its key, or by what an owner calls it.
type Named struct {
	Name string `json:"name"`
}

// Listed answers PhonesAct.
type Listed struct {
	Phones []Phone `json:"phones"`
}

// Own journals that an owner does something, and does it.
type Own func(who agents.Principal, word, about string, do func() error) error

// Operations returns the operations of owners. name returns what an owner calls a key, "" for nothing.
func (s *Store) Operations(own Own, name func(key string) string) []op.Row {
	list := func() (all []Phone) {
		all = s.List()
		for i := range all {
			all[i].Name = name(all[i].Key)
		}
		return all
	}
	about := func(word string, do func(key string) error) op.Method[Named, op.None] {
		return func(_ context.Context, who agents.Principal, of Named) (none op.None, _ error) {
			var found []string
			for _, p := range list() {
				if p.Key == of.Name || p.Name == of.Name && of.Name != "" {
					found = append(found, p.Key)
				}
			}
			switch len(found) {
			case 0:
				return none, device.Faultf(device.Invalid,
					"no phone %.60q is told anything or asks for it: agentsite notify phones lists them", of.Name)
			case 1:
				return none, own(who, word, found[0], func() error { return do(found[0]) })
			}
			return none, device.Faultf(device.Invalid,
				"%d phones are called %.60s: name one by its did:key", len(found), of.Name)
		}
	}
	return []op.Row{
		op.ForOwners(PhonesAct, agents.Reads, "notify phones",
			"List the phones that are told what happens, and those that ask for it.",
			func(context.Context, agents.Principal, op.None) (Listed, error) { return Listed{list()}, nil }),
		op.ForOwners(TellAct, agents.Acts, "notify allow", "Tell a phone that asks for it what happens.",
			about("tell", s.Allow)),
		op.ForOwners(UntellAct, agents.Returns, "notify forget", "Tell a phone nothing any more.",
			about("untell", s.Remove)),
	}
}
