package owner

import (
	"slices"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/node/access"
	"agentsite/node/hosted"
	"agentsite/transport/rpc"
)

// Method is the name of a JSON-RPC method, with the types of its parameters and its result.
type Method[Params, Result any] string

// The owner's methods. For everybody else they do not exist.
const (
	ResetMethod       Method[None, None]                    = "owner/reset"     // ends the emergency stop
	ReloadMethod      Method[None, None]                    = "owner/reload"    // reads the configuration again
	TakeOverMethod    Method[Name, None]                    = "owner/take-over" // makes the owner the holder of an output
	RequestsMethod    Method[None, waitingCalls]            = "owner/requests"  // lists the calls that wait for approval
	ApproveMethod     Method[Name, None]                    = "owner/approve"   // by the call's handle
	DenyMethod        Method[Name, None]                    = "owner/deny"      // by the call's handle
	AccessMethod      Method[AccessParams, Access]          = "owner/access"    // lists owners, grants and tokens
	TokenMethod       Method[NewToken, MadeToken]           = "owner/token"     // makes a token for a grant that an owner signed
	GrantMethod       Method[Signed, None]                  = "owner/grant"     // stores a grant that an owner signed
	RevokeMethod      Method[Name, None]                    = "owner/revoke"    // ends a token, a grant, or all permissions of a key
	AddOwnerMethod    Method[Name, None]                    = "owner/add-owner" // by a did:key, as the next
	RemoveOwnerMethod Method[Name, None]                    = "owner/remove-owner"
	TimeMethod        Method[TimeNow, Reached]              = "owner/time"     // sets the site's time by an owner's clock
	RecoveryMethod    Method[None, MadeRecovery]            = "owner/recovery" // makes a code for when every owner's key is lost
	RecoverMethod     Method[Recovery, None]                = "owner/recover"  // uses the code on the site's own machine
	RoutesMethod      Method[None, Routes]                  = "owner/routes"   // lists everything that listens
	HealthMethod      Method[None, Health]                  = "owner/health"
	FindMethod        Method[Wanted, foundAll]              = "owner/find"   // finds other sites of the realm
	ImportMethod      Method[Import, imported]              = "owner/import" // adds past readings of a measurement
	AgentsMethod      Method[None, hosted.Agents]           = "owner/agents" // lists the agents that the site hosts
	PauseMethod       Method[Name, None]                    = "owner/pause"  // stops one of them, until the next
	ResumeMethod      Method[Name, None]                    = "owner/resume"
	TryMethod         Method[trial.Request, trial.Result]   = "owner/try"     // tries rules over the past
	OfferMethod       Method[agent.Acceptance, agent.Offer] = "owner/offer"   // asks another program what tools it offers, and accepts them as they were shown
	ConnectMethod     Method[Name, agent.Connected]         = "owner/connect" // stores another site's grant, by its text, for the agents of this one
)

// The methods for any caller that proved a key to the carrier. On a network, a site that
// nobody owns answers nothing else.
const (
	ChallengeMethod Method[None, challenge]       = "claim/challenge" // the first step of a claim
	ProveMethod     Method[access.Proof, claimed] = "claim/prove"     // the second step: makes the caller the owner
	ReclaimMethod   Method[Recovery, None]        = "claim/recover"   // RecoverMethod over the network, for the proven key
	PresentMethod   Method[Signed, Reached]       = "grant/present"   // stores a grant that the site was not told of; without one, ends those that the caller presented
)

// None is for a method without parameters, or without a result.
type None struct{}

// Name says what a method is about: an output, a handle, a key, a token or a grant.
type Name struct {
	Name string `json:"name,omitzero"`
}

// waitingCalls answers RequestsMethod.
type waitingCalls struct {
	Requests []Request `json:"requests"`
}

// Request is a call that waits for an owner's approval.
type Request struct {
	Handle string   `json:"handle"`
	Who    string   `json:"who"`
	Tool   string   `json:"tool"`
	Args   rpc.Raw  `json:"arguments"`
	Via    []string `json:"via,omitzero"`
	Left   float64  `json:"seconds_left"`
	Holds  float64  `json:"would_hold_seconds,omitzero"` // a move, now, within all limits
}

// AccessParams are the parameters of AccessMethod.
type AccessParams struct {
	Challenge []byte `json:"challenge,omitzero"` // 32 random bytes, for the site to prove its key
}

// Access answers AccessMethod.
type Access struct {
	Site string    `json:"site"` // its did:key
	Name string    `json:"name"`
	At   []string  `json:"addresses"`
	URL  string    `json:"url"`
	Time time.Time `json:"time"`
	Sure bool      `json:"time_is_known"` // false: the time is a guess
	// Off is the seconds by which a machine's clock that is not trusted is ahead of the site's time.
	Off       float64   `json:"machine_ahead_seconds,omitzero"`
	LastKnown bool      `json:"last_known,omitzero"` // the time is used although it is not known
	Owners    []Owner   `json:"owners"`
	Grants    []Granted `json:"grants"`
	Proof     []byte    `json:"proof,omitzero"` // of the key, where there was a challenge
}

// Owner is a key with authority over the site.
type Owner struct {
	DID  string `json:"did"`
	Name string `json:"name,omitzero"`
}

// Granted is a grant, or a token that stands for one.
type Granted struct {
	ID    string    `json:"id"`
	Token string    `json:"token,omitzero"` // its name
	To    string    `json:"to,omitzero"`    // without a token: the key of its holder
	May   []string  `json:"may"`            // one for each delegation; all have to allow a call
	Until time.Time `json:"until,omitzero"`
}

// NewToken is the parameters of TokenMethod.
type NewToken struct {
	Name  string    `json:"name"`
	Grant []byte    `json:"grant"` // its audience is the site
	Until time.Time `json:"until"`
}

// MadeToken answers TokenMethod.
type MadeToken struct {
	ID    string    `json:"id"`    // of its grant
	Token string    `json:"token"` // the secret; it is shown this once
	Until time.Time `json:"until"`
	Owner string    `json:"new_owner,omitzero"` // the signer, where signing made it the first owner
}

// Signed is the parameters of GrantMethod and PresentMethod.
type Signed struct {
	Grant []byte `json:"grant"`
	// Replace, of GrantMethod, ends what the same keys passed on to the same audience before.
	Replace bool `json:"replace,omitzero"`
}

// Reached answers PresentMethod and TimeMethod: where the site may be reached now, which
// only callers with a permission learn.
type Reached struct {
	At []string `json:"at,omitzero"`
}

// TimeNow is the parameters of TimeMethod.
type TimeNow struct {
	Now  time.Time `json:"now"`
	Set  bool      `json:"set,omitzero"`  // the owner says so; otherwise it counts within the bounds of network time
	Back bool      `json:"back,omitzero"` // and also backwards: for an owner on the site's own machine
}

// MadeRecovery answers RecoveryMethod.
type MadeRecovery struct {
	Code string `json:"code"` // it is shown this once
}

// Recovery is the parameters of RecoverMethod and ReclaimMethod.
type Recovery struct {
	Code string `json:"code"`
	DID  string `json:"did,omitzero"` // of RecoverMethod: the key that becomes the only owner
}

// challenge answers ChallengeMethod.
type challenge struct {
	Challenge [32]byte `json:"challenge"`
}

// claimed answers ProveMethod.
type claimed struct {
	Answer access.Answer `json:"answer"`
	Name   string        `json:"name"` // of the site
}

// Routes answers RoutesMethod.
type Routes struct {
	Carriers []Carrier `json:"carriers"`
	Methods  []string  `json:"methods"` // of all carriers
}

// Carrier is something that listens.
type Carrier struct {
	Kind    string   `json:"kind"`
	Address string   `json:"address"`         // a URL without a path, or a socket's file
	Routes  []string `json:"routes,omitzero"` // over HTTP: "GET /healthz", or "/mcp" for every verb; over libp2p: protocols
	Public  []string `json:"public,omitzero"` // those of Routes that answer everybody
}

// The kinds of carriers.
const (
	HTTPCarrier   = "http"
	HTTPSCarrier  = "https"
	OwnerCarrier  = "owner socket"
	AgentsCarrier = "agents socket"
	P2PCarrier    = "libp2p"
)

// Health answers HealthMethod.
type Health struct {
	Configuration string `json:"configuration,omitzero"` // its absolute path; "" for the demonstration
}

// Wanted is the parameters of FindMethod.
type Wanted struct {
	Capability string `json:"capability,omitzero"` // "" for all that the site knows already, without asking anybody
}

// foundAll answers FindMethod.
type foundAll struct {
	Found []Found `json:"found"`
}

// Import is the parameters of ImportMethod. Without readings it is checked whether they may
// follow. The readings of an hour of UTC belong in one call.
type Import struct {
	Point    string        `json:"point"`
	Readings []PastReading `json:"readings,omitzero"` // in the order of time
	Dry      bool          `json:"dry_run,omitzero"`  // answers what it would do, and does nothing
}

// PastReading is one reading, or several together, in the point's unit.
type PastReading struct {
	Time  time.Time `json:"time"` // of the first
	Min   float64   `json:"min"`
	Mean  float64   `json:"mean"`
	Max   float64   `json:"max"`
	Last  float64   `json:"last"`
	Count int       `json:"count"`
}

// Summary returns the reading as the history takes it.
func (r PastReading) Summary() device.Summary {
	return device.Summary{At: r.Time, Min: r.Min, Mean: r.Mean, Max: r.Max, Last: r.Last, Count: r.Count, Good: r.Count}
}

// imported answers ImportMethod.
type imported struct {
	Imported int `json:"imported"` // how many readings; those in hours that the site has are left out
}

// Found is another site, as it announces itself.
type Found struct {
	Name   string   `json:"name"`
	DID    string   `json:"did"`
	URLs   []string `json:"urls"`
	Public []public `json:"public,omitzero"`
}

// NewFound returns a site as its record announces it.
func NewFound(r *discovery.Signed) Found {
	f := Found{Name: r.Name, DID: r.Site.String(), URLs: r.Addresses}
	for _, k := range r.Offer {
		f.Public = append(f.Public, public{k.Kind, k.Points})
	}
	return f
}

// Announces reports whether the site announces to everybody that it has something of a kind.
func (f *Found) Announces(kind, name string) bool {
	return slices.ContainsFunc(f.Public, func(k public) bool { return k.Kind == kind && slices.Contains(k.Points, name) })
}

// public are the points of one kind that a site announces to everybody.
type public struct {
	Kind   string   `json:"Kind"`
	Points []string `json:"Points"`
}
