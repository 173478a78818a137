package op

import (
	"context"
	"reflect"

	"agentsite/agents"
)

// Operation is an operation on a site, for protocols that take its request as one object.
type Operation struct {
	agents.Operation
	Name            string       // one word
	Description     string       // what it does, for people and their agents
	Example         string       // members of a request beside its point, in JSON
	Field           string       // of the request: the point, or the points; "" of an agents.SiteRequest
	Request, Answer reflect.Type // structs that encode by their json tags
	One             reflect.Type // the answer of one site, where each site of a group has its own; else nil
	// Decode decodes a request, and returns a pointer to it. It does not refer to what it was decoded from.
	Decode func(Decoder) (any, error)
	// Ask asks a site, as the method of agents.Site does, with a request of Decode, whose terms it sets.
	Ask func(ctx context.Context, s agents.Site, p agents.Principal, request any, t agents.Terms) (any, error)
}

// Decoder decodes a request into the struct that into points to. It refuses an unknown member.
type Decoder interface{ Decode(into any) error }

// The operations.
var (
	Points = operation(agents.OpPoints, "points", "", agents.Site.Points,
		"Lists the points with their kinds, units and limits.", "")
	Read    = operation(agents.OpRead, "read", "points", agents.Site.Read, "Reads points; all where none is named.", "")
	History = operation(agents.OpHistory, "history", "point", agents.Site.History, "Tells how a point went.", `"hours":12`)
	Why     = operation(agents.OpWhy, "why", "point", agents.Site.Why, "Explains why a point is as it is.", "")
	Status  = operation(agents.OpStatus, "status", "", agents.Site.Status,
		"Tells what is wrong, and which outputs are away from safe.", "")
	Move = operation(agents.OpMove, "move", "output", agents.Site.Move, "Moves an output for some seconds, "+
		"after which it goes back to safe by itself; without a value, releases it.", "")
	Stop = operation(agents.OpStop, "stop", "", agents.Site.Stop,
		"Sends every output to safe until an owner resets that.", "")
	Show    = operation(agents.OpShow, "show", "display", show, "Shows a text on a display.", `"text":"hello"`)
	Capture = operation(agents.OpCapture, "capture", "camera", agents.Site.Capture, "Takes a picture.", "")
)

// Operations are all, in the order in which they are listed.
var Operations = []*Operation{Points, Read, History, Why, Status, Move, Stop, Show, Capture}

// show answers with its request.
func show(s agents.Site, ctx context.Context, p agents.Principal, r agents.ShowRequest) (agents.ShowRequest, error) {
	return r, s.Show(ctx, p, r)
}

func operation[R, A any, P interface {
	*R
	SetTerms(agents.Terms)
}](o agents.Operation, name, field string,
	do func(agents.Site, context.Context, agents.Principal, R) (A, error), description, example string) *Operation {
	answer := reflect.TypeFor[A]()
	var one reflect.Type
	if _, each := any(*new(A)).(interface{ Only() any }); each {
		sites, _ := answer.FieldByName("Sites")
		one = sites.Type.Elem()
	}
	return &Operation{
		Operation: o, Name: name, Description: description, Example: example, Field: field,
		Request: reflect.TypeFor[R](), Answer: answer, One: one,
		Decode: func(d Decoder) (any, error) { r := P(new(R)); return r, d.Decode(r) },
		Ask: func(ctx context.Context, s agents.Site, p agents.Principal, request any, t agents.Terms) (any, error) {
			r := request.(P)
			r.SetTerms(t)
			answer, err := do(s, ctx, p, *r)
			if err != nil {
				return nil, err
			}
			return answer, nil
		},
	}
}

// AskOne is Ask of one site, whose answer stands for itself.
func (o *Operation) AskOne(
	ctx context.Context, s agents.Site, p agents.Principal, request any, t agents.Terms,
) (any, error) {
	answer, err := o.Ask(ctx, s, p, request, t)
	if all, ok := answer.(interface{ Only() any }); ok {
		return all.Only(), err
	}
	return answer, err
}

// Offered reports whether an offer has the operation, and returns the points that it can name.
func (o *Operation) Offered(offer *agents.Offer) (points []string, offered bool) {
	for _, t := range Tools {
		switch {
		case t.Of != o:
		case t.Whole != nil:
			return nil, *t.Whole(offer)
		case t.Points == nil:
			return offer.Read, len(offer.Read) > 0
		default:
			points = append(points, *t.Points(offer)...)
		}
	}
	return points, len(points) > 0
}
