package hosting

import (
	"errors"
	"fmt"
	"log/slog"

	"agentsite/node"
	"agentsite/node/outbox"
	"agentsite/node/state"
	"agentsite/transport/notify"
)

// openNotify returns the World of notifications, with those of before that wait.
func openNotify(o Options) (notify.World, error) {
	stored, err := o.Folder.ReadAtMost(state.OutboxFile, outbox.MaxFile)
	if foreign := (state.Mistake{}); errors.As(err, &foreign) {
		return notify.World{}, err
	}
	box, damage := outbox.Open(outbox.Options{
		File: stored, Err: err, Now: o.Access.Now,
		Write: func(text []byte) error { return state.WriteAtomic(o.Folder.Path(state.OutboxFile), text, 0o600) },
	})
	if damage != nil { // the outputs do not wait for it
		slog.Error("notifications are not stored", "err",
			fmt.Errorf("%w; remove %s, and start again", damage, o.Folder.Path(state.OutboxFile)))
	}
	return notify.World{
		Owner:  func(principal string) bool { return principal == node.LocalOwner.ID || o.Access.Owns(principal) },
		Source: o.Occurrences, Outbox: box, Phones: o.Phones, Secret: secrets(o.File), Name: o.Access.Called,
		Now: o.Access.Now,
	}, nil
}
