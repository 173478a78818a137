package mcp

import (
	"slices"

	"agentsite/agents"
	"agentsite/agents/skill"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/mcp/view"
	"agentsite/transport/rpc"
)

// Versions are the revisions that a client may choose from: those of this package, and older ones after a
// handshake (package legacy).
var Versions = slices.Concat(rpc.Revisions, rpc.Handshakes)

// Codes that MCP allots (basic/index, "Error Codes").
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// cacheFor is a hint how long clients may cache lists, in milliseconds. A change is announced to
// subscribers.
const cacheFor = 300_000

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitzero"`
	Version string `json:"version"`
}

// RequestMeta is the _meta of every request.
type RequestMeta struct {
	Version       string              `json:"io.modelcontextprotocol/protocolVersion"`
	Client        *Implementation     `json:"io.modelcontextprotocol/clientInfo,omitzero"`
	Capabilities  *clientCapabilities `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel      string              `json:"io.modelcontextprotocol/logLevel,omitzero"`
	ProgressToken rpc.ID              `json:"progressToken,omitzero"`
	Text          string              `json:"agentsite/text,omitzero"` // "none" leaves out the text of a structured result
	// Steps asks for tasks in full, with their steps, in the _meta of messages about them.
	Steps bool `json:"agentsite/steps,omitzero"`
	// Values asks a subscription for values, with so many seconds between notifications.
	Values       *float64 `json:"agentsite/values,omitzero"`
	agents.Terms          // of a tools/call; Via of every request

	capabilities clientCapabilities // of SetMember
}

// clientCapabilities list the requests that a client can answer.
type clientCapabilities struct {
	Elicitation *struct{}  `json:"elicitation,omitzero"`
	Sampling    *struct{}  `json:"sampling,omitzero"`
	Roots       *struct{}  `json:"roots,omitzero"`
	Extensions  extensions `json:"extensions,omitzero"`
}

// extensions are those that we know, of a client or our own.
type extensions struct {
	Tasks  *struct{} `json:"io.modelcontextprotocol/tasks,omitzero"`
	Events *struct{} `json:"io.modelcontextprotocol/events,omitzero"`
	Skills *struct{} `json:"io.modelcontextprotocol/skills,omitzero"`
	// UI is of a client: view.Settings, and anything of one that errs, which has no view then.
	UI rpc.Raw `json:"io.modelcontextprotocol/ui,omitzero"`
	// Unconfirmed says that a site heeds the key of that name in the _meta of a call.
	Unconfirmed *struct{} `json:"agentsite/unconfirmed,omitzero"`
}

// Params are the parameters of every request.
type Params struct {
	Meta *RequestMeta `json:"_meta"`

	own RequestMeta // of SetMember: allocated with the parameters
}

func (p *Params) meta() *RequestMeta { return p.Meta }

// mirrored returns the part of a request that Mcp-Name repeats; "" for most.
func (p *Params) mirrored() string { return "" }

// Round has the parameters of a request that may ask for input.
type Round struct {
	Responses map[string]rpc.Raw `json:"inputResponses,omitzero"`
	State     string             `json:"requestState,omitzero"`
}

type (
	// listParams are those of the lists and of server/discover.
	listParams struct {
		Params
		Cursor string `json:"cursor,omitzero"`
	}
	// callParams are those of tools/call.
	callParams struct {
		Params
		Round
		Name      string  `json:"name"`
		Arguments rpc.Raw `json:"arguments,omitzero"`
	}
	// readParams are those of resources/read.
	readParams struct {
		Params
		URI string `json:"uri"`
	}
	// promptParams are those of prompts/get.
	promptParams struct {
		Params
		Round
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments,omitzero"`
	}
	// completeParams are those of completion/complete.
	completeParams struct {
		Params
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name,omitzero"`
			URI  string `json:"uri,omitzero"`
		} `json:"ref"`
		Argument struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"argument"`
	}
	// listenParams are those of subscriptions/listen.
	listenParams struct {
		Params
		Notifications filter `json:"notifications"`
	}
)

func (p *callParams) mirrored() string   { return p.Name }
func (p *readParams) mirrored() string   { return p.URI }
func (p *promptParams) mirrored() string { return p.Name }

// filter says which notifications a subscription wants.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitzero"`
	Prompts   bool     `json:"promptsListChanged,omitzero"`
	Resources bool     `json:"resourcesListChanged,omitzero"`
	URIs      []string `json:"resourceSubscriptions,omitzero"`
	TaskIDs   []string `json:"taskIds,omitzero"`
}

// Result has the fields of every result.
type Result struct {
	Type string     `json:"resultType"`
	Meta ResultMeta `json:"_meta"`
}

// ResultMeta is the _meta of a result.
type ResultMeta struct {
	Server       *Implementation `json:"io.modelcontextprotocol/serverInfo,omitzero"`
	Subscription rpc.ID          `json:"io.modelcontextprotocol/subscriptionId,omitzero"`
	Fault        string          `json:"agentsite/fault,omitzero"`       // the fault kind of a failed tool call
	After        float64         `json:"agentsite/retry-after,omitzero"` // seconds until it may be allowed
	Approval     string          `json:"agentsite/approval,omitzero"`    // what an owner has to do before the call is made
	From         string          `json:"agentsite/from,omitzero"`        // the agent with whose words a tool answers, which are another program's
	Task         *task.Task      `json:"agentsite/task,omitzero"`        // where the request says agentsite/steps
}

// Cached are a client's hints for keeping a result. The scope is private throughout, because
// results depend on the caller.
type Cached struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

type discoverResult struct {
	Result
	Cached
	Versions     []string           `json:"supportedVersions"`
	Capabilities serverCapabilities `json:"capabilities"`
	Instructions string             `json:"instructions,omitzero"`
}

type serverCapabilities struct {
	Tools       changing   `json:"tools"`
	Resources   changing   `json:"resources"`
	Prompts     changing   `json:"prompts"`
	Completions *struct{}  `json:"completions"`
	Extensions  extensions `json:"extensions,omitzero"`
	// Events repeats the extension where its draft had it: @ai-sdk/mcp 2.0.99 and ChatGPT look only here.
	Events *struct{} `json:"events,omitzero"`
}

type changing struct {
	ListChanged bool `json:"listChanged"`
	Subscribe   bool `json:"subscribe,omitzero"`
}

// toolsResult answers tools/list.
type toolsResult struct {
	Result
	Cached
	Tools []tool `json:"tools"`
}

// tool is a tool's definition.
type tool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitzero"`
	Description string         `json:"description,omitzero"`
	Input       rpc.Raw        `json:"inputSchema"`
	Output      rpc.Raw        `json:"outputSchema,omitzero"`
	Annotations annotations    `json:"annotations"`
	Meta        *view.ToolMeta `json:"_meta,omitzero"`
}

// annotations are a tool's hints that differ from the specification's defaults (server/tools, "Tool
// annotations"): a tool that changes things, may destroy, and acts on an open world.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint,omitzero"`
	Destructive *bool `json:"destructiveHint,omitzero"`
	Idempotent  bool  `json:"idempotentHint,omitzero"`
	OpenWorld   bool  `json:"openWorldHint"` // false: a site's tools reach its own board
}

// CallResult answers tools/call. Structured is a Go value on its way out and a
// Raw on its way in.
type CallResult struct {
	Result
	Content    []Content `json:"content"`
	Structured any       `json:"structuredContent,omitzero"`
	IsError    bool      `json:"isError,omitzero"`
}

// Content is a content block.
type Content struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitzero"`
	Data     string            `json:"data,omitzero"` // base64
	MIME     string            `json:"mimeType,omitzero"`
	Resource *resourceContents `json:"resource,omitzero"`
}

// resourceContents is one content of a resource: a text or a blob.
type resourceContents struct {
	URI  string             `json:"uri"`
	MIME string             `json:"mimeType,omitzero"`
	Text *string            `json:"text,omitzero"`
	Blob string             `json:"blob,omitzero"` // base64
	Meta *view.ContentsMeta `json:"_meta,omitzero"`
}

type resourcesResult struct {
	Result
	Cached
	Resources []tools.Resource `json:"resources"`
}

type templatesResult struct {
	Result
	Cached
	Templates []tools.Template `json:"resourceTemplates"`
}

type readResult struct {
	Result
	Cached
	Contents []resourceContents `json:"contents"`
}

// skillsResult answers skills/list, skillResult skills/get.
type skillsResult struct {
	Result
	Cached
	Skills []skill.Entry `json:"skills"`
}

type skillResult struct {
	Result
	Cached
	Skill skill.Entry `json:"skill"`
}

type promptsResult struct {
	Result
	Cached
	Prompts []tools.Prompt `json:"prompts"`
}

type promptResult struct {
	Result
	Description string          `json:"description,omitzero"`
	Messages    []promptMessage `json:"messages"`
}

type promptMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

type completeResult struct {
	Result
	Completion tools.Completions `json:"completion"`
}

type inputRequired struct {
	Result
	Requests map[string]inputRequest `json:"inputRequests,omitzero"`
	State    string                  `json:"requestState,omitzero"`
	Content  []Content               `json:"content,omitzero"`
}

type inputRequest struct {
	Method string `json:"method"`
	Params any    `json:"params,omitzero"`
}

// progressParams are those of notifications/progress.
type progressParams struct {
	Token    rpc.ID  `json:"progressToken"`
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitzero"`
	Message  string  `json:"message,omitzero"`
}

type logParams struct {
	Level string `json:"level"`
	Data  string `json:"data"`
}

// subscriptionParams are those of every notification of a subscription.
type subscriptionParams struct {
	Meta          subscriptionMeta `json:"_meta"`
	Notifications *filter          `json:"notifications,omitzero"` // of the acknowledgement
	URI           string           `json:"uri,omitzero"`           // of resources/updated
}

type subscriptionMeta struct {
	Subscription rpc.ID     `json:"io.modelcontextprotocol/subscriptionId"`
	Values       *float64   `json:"agentsite/values,omitzero"` // of the acknowledgement, as asked for
	Task         *task.Task `json:"agentsite/task,omitzero"`   // as in ResultMeta
}

// valuesParams are those of notifications/agentsite/values: an agents.Update. Lists that
// have not changed are left out.
type valuesParams struct {
	Meta      subscriptionMeta   `json:"_meta"`
	Points    []tablePoint       `json:"points,omitzero"` // of a snapshot
	Readings  []tableReading     `json:"readings,omitzero"`
	Approvals []agents.Approval  `json:"approvals,omitzero"`
	Stopped   *bool              `json:"emergency_stop,omitzero"` // of one site
	Sites     []agents.StopState `json:"sites,omitzero"`          // of a group
	Missed    []agents.Missed    `json:"not_answered,omitzero"`
}

// tablePoint is an entry of the table that readings point into.
type tablePoint struct {
	Point string `json:"point"`
	Unit  string `json:"unit,omitzero"`
}

type tableReading struct {
	Index   int                  `json:"i"` // into the table
	Value   device.Value         `json:"value,omitzero"`
	Age     float64              `json:"age_seconds"`
	Quality device.Quality       `json:"quality,omitzero"` // good when left out
	Why     string               `json:"why,omitzero"`
	Output  *agents.OutputDetail `json:"output,omitzero"` // of an output, always: what it is doing
}
