// Package op describes operations as rows of a table, which protocols render: a name, an effect,
// who may ask, a description, and a request and an answer as Go types.
package op

import (
	"context"
	"reflect"

	"agentsite/agents"
	"agentsite/device"
)

// Name is the name of an operation, with the types of its request and its answer. Both are structs
// that encode by their json tags.
type Name[Request, Answer any] string

// None is a request, or an answer, without members.
type None struct{}

// Method is the method of an operation.
type Method[R, A any] func(ctx context.Context, p agents.Principal, r R) (A, error)

// Who limits an operation to the principals that may ask for it.
type Who uint8

const (
	// Owners alone may ask. The operation is no tool of a model, and for everybody else it does
	// not exist.
	Owners Who = iota
)

// Row is an operation of a table.
type Row struct {
	Name        string // [a-z/-]; it is the method of JSON-RPC
	Description string // what it does, for people
	Effect      agents.Effect
	Who         Who
	Command     string // the sub-command with which people ask for it

	Request, Answer reflect.Type
	// Do decodes a request into a pointer to a Request, and returns an Answer. Errors are faults. A
	// principal that may not ask is refused, with Denied, before anything is decoded.
	Do func(ctx context.Context, p agents.Principal, decode func(into any) error) (any, error)
}

// ForOwners returns the row of an operation for owners, whose method is do.
func ForOwners[R, A any](name Name[R, A], effect agents.Effect, command, description string, do Method[R, A]) Row {
	return Row{
		Name: string(name), Description: description, Effect: effect, Who: Owners, Command: command,
		Request: reflect.TypeFor[R](), Answer: reflect.TypeFor[A](),
		Do: func(ctx context.Context, p agents.Principal, decode func(any) error) (any, error) {
			if p.ID == "" || !p.Owner {
				return nil, device.Faultf(device.Denied,
					"this is an owner's: run agentsite %s on the site's own machine, or with --site where you own it", command)
			}
			var r R
			if err := decode(&r); err != nil {
				return nil, device.Faultf(device.Invalid, "%w", err)
			}
			answer, err := do(ctx, p, r)
			if err != nil {
				return nil, err
			}
			return answer, nil
		},
	}
}
