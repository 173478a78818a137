package anp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// negotiation is the parameters of anp.negotiate. Unknown members are ignored.
type negotiation struct {
	Meta struct {
		Profile     string `json:"profile"`
		Security    string `json:"security_profile"`
		ContentType string `json:"content_type"`
	} `json:"meta"`
	Body struct {
		ID     string `json:"negotiation_id"`
		Mode   string `json:"mode"`
		Intent struct {
			Name string   `json:"name"`
			Tags []string `json:"intentTags"`
		} `json:"intent"`
		Required []string `json:"requiredCapabilities"`
		Caller   struct {
			Profiles     []string `json:"supportedProfiles"`
			Security     []string `json:"supportedSecurityProfiles"`
			ContentTypes []string `json:"supportedContentTypes"`
		} `json:"callerCapabilities"`
		Constraints struct {
			Types    []string `json:"preferredInterfaceTypes"`
			Human    bool     `json:"requiresHumanAuthorization"`
			Security string   `json:"requiredSecurityProfile"`
		} `json:"constraints"`
		Candidates []string `json:"candidateInterfaceRefs"`
	} `json:"body"`
}

// Errors of ANP-06, section 11. 1600 and 1608 are of sites that keep negotiations.
var (
	errNoInterface  = negotiationError(1601, "meta.no_matching_interface", "no interface fits the intent and the constraints")
	errMode         = negotiationError(1602, "meta.unsupported_negotiation_mode", "the only mode is structured_selection")
	errProfile      = negotiationError(1603, "meta.unsupported_candidate_profile", "the profiles are "+negotiationProfile+" and "+rpcProfile)
	errNoProfile    = negotiationError(1603, "meta.unsupported_candidate_profile", "meta.profile is missing: it is "+negotiationProfile)
	errSecurity     = negotiationError(1604, "meta.unsupported_security_profile", "the only security profile is "+transportProtected)
	errContentType  = negotiationError(1605, "meta.unsupported_content_type", "the only content type is "+jsonType)
	errIncomplete   = negotiationError(1606, "meta.more_information_required", "the intent needs a name or intentTags, such as those of the operations: read_points")
	errUnauthorized = negotiationError(1607, "meta.authorization_required", "you may not do this here, as far as the site knows you")
)

// errorData is the machine's part of an error.
type errorData struct {
	Code      string `json:"anp_code"`
	Retryable bool   `json:"retryable"`
}

func negotiationError(code int, name, says string) *rpc.Error {
	return &rpc.Error{Code: code, Message: says, Data: errorData{Code: name}}
}

// negotiated answers anp.negotiate.
type negotiated struct {
	ID        string    `json:"negotiationId"`
	Status    string    `json:"status"`
	Selected  selected  `json:"selected"`
	Execution execution `json:"execution"`
	Digest    string    `json:"negotiationDigest"`
}

type selected struct {
	Capability      string `json:"capability"`
	Interface       string `json:"interface"`
	Protocol        string `json:"protocol"`
	Profile         string `json:"profile"`
	SecurityProfile string `json:"securityProfile"`
	ContentType     string `json:"contentType"`
	URL             string `json:"url"`
}

type execution struct {
	Mode  string `json:"mode"`
	Human bool   `json:"requiresHumanAuthorization"`
}

// accepts reports whether a caller's list has our value, or is missing.
func accepts(theirs []string, ours string) bool {
	return len(theirs) == 0 || slices.Contains(theirs, ours)
}

// check refuses profiles that the site does not support.
func (n *negotiation) check() error {
	b := &n.Body
	switch {
	case n.Meta.Profile == "":
		return errNoProfile
	case n.Meta.Profile != negotiationProfile, !accepts(b.Caller.Profiles, rpcProfile):
		return errProfile
	case n.Meta.Security != "" && n.Meta.Security != transportProtected, !accepts(b.Caller.Security, transportProtected),
		b.Constraints.Security != "" && b.Constraints.Security != transportProtected:
		return errSecurity
	case n.Meta.ContentType != "" && n.Meta.ContentType != jsonType, !accepts(b.Caller.ContentTypes, jsonType):
		return errContentType
	case b.Mode != "" && b.Mode != "structured_selection":
		return errMode
	case b.Intent.Name == "" && len(b.Intent.Tags) == 0 && len(b.Required) == 0:
		return errIncomplete
	case !accepts(b.Constraints.Types, structured):
		return errNoInterface
	}
	return nil
}

// words are further names of operations.
var words = map[string]string{
	"list": "list_points", "points": "list_points", "read": "read_points", "sensor_read": "read_points", "history": "read_history", "explain": "explain_point",
	"switch": tools.SwitchOutput, "set": tools.SetLevel, "release": tools.ReleaseOutput, "stop": "emergency_stop", "status": "site_status",
	"show": "show_text", "capture": "capture_image", "task": tools.AskAgent, "ask": tools.AskAgent,
}

// operationOf returns the operation that a word names, or the word as the name of a tool.
func operationOf(word string) string {
	word = strings.TrimPrefix(strings.ToLower(word), "cap.")
	word = strings.NewReplacer(".", "_", "-", "_", " ", "_").Replace(word)
	if name, ok := words[word]; ok {
		return name
	}
	return word
}

// negotiate answers anp.negotiate: the first operation that the intent names and the caller may use.
func (a server) negotiate(ctx context.Context, c *adapter.Call, params rpc.Raw) (any, error) {
	var n negotiation
	if err := params.Decode(&n); err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	capability, err := a.capability(ctx, c.Who, &n)
	if err != nil {
		return nil, err
	}
	outputs, err := a.confirmed(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	out := negotiated{
		ID: n.Body.ID, Status: "accepted",
		Selected:  selected{capability, operations, "openrpc", rpcProfile, transportProtected, jsonType, c.Base() + "/anp/interface.json"},
		Execution: execution{Mode: "direct_structured_call"},
	}
	offer, err := a.Node.Offer(ctx, c.Who)
	if err != nil {
		return nil, err
	}
	var movable []string
	switch capability {
	case tools.SwitchOutput:
		movable = offer.Switch
	case tools.SetLevel:
		movable = offer.Level
	}
	isConfirmed := func(output string) bool { return slices.Contains(outputs, output) }
	all := !slices.ContainsFunc(movable, func(output string) bool { return !isConfirmed(output) })
	if slices.ContainsFunc(movable, isConfirmed) && (all || n.Body.Constraints.Human || !accepts(n.Body.Candidates, operations)) {
		out.Selected.Interface, out.Selected.URL, out.Execution.Human = confirmed, c.Base()+"/anp/confirmed.json", true
	}
	if capability == tools.AskAgent {
		out.Execution.Mode = "async_task"
	}
	if !accepts(n.Body.Candidates, out.Selected.Interface) {
		return nil, errNoInterface
	}
	if out.ID == "" {
		out.ID = rand.Text()
	}
	text, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	out.Digest = "sha-256:" + base64.RawURLEncoding.EncodeToString(sum[:])
	return out, nil
}

// capability returns the requested operation. Every required capability has to be offered. Of the
// intent's words, the first that names an operation counts.
func (a server) capability(ctx context.Context, who agents.Principal, n *negotiation) (string, error) {
	all, err := a.Tools.Tools(ctx, who)
	if err != nil {
		return "", err
	}
	offered := func(name string) bool {
		return slices.ContainsFunc(all, func(t tools.Tool) bool { return t.Name == name })
	}
	for _, word := range n.Body.Required {
		if name := operationOf(word); !offered(name) && tools.IsOperation(name) {
			return "", errUnauthorized
		} else if !offered(name) {
			return "", errNoInterface
		}
	}
	refused := false
	for _, word := range slices.Concat(n.Body.Required, []string{n.Body.Intent.Name}, n.Body.Intent.Tags) {
		name := operationOf(word)
		switch {
		case offered(name):
			return name, nil
		case tools.IsOperation(name):
			refused = true
		}
	}
	if refused {
		return "", errUnauthorized
	}
	return "", errNoInterface
}
