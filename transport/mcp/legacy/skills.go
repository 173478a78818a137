package legacy

import (
	"context"

	"agentsite/agents/skill"
	"agentsite/agents/tools"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// skillsExtension is the extension for skills (SEP-2640), as a client finds it among the server's capabilities.
const skillsExtension = "io.modelcontextprotocol/skills"

type skillsParams struct {
	sdk.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type skillsResult struct {
	sdk.ResultBase
	Skills []skill.Entry `json:"skills"`
}

type skillParams struct {
	sdk.ParamsBase
	URI string `json:"uri"`
}

type skillResult struct {
	sdk.ResultBase
	Skill skill.Entry `json:"skill"`
}

// addSkills adds the methods of the extension. Their files are resources.
func (h *host) addSkills() error {
	err := sdk.AddReceivingCustomMethod(h.sdk, "skills/list",
		func(ctx context.Context, _ *sdk.ServerSession, p *skillsParams) (*skillsResult, error) {
			if p.Cursor != "" {
				return nil, invalidParams("cursor: there is none; the list comes whole")
			}
			all, err := h.srv.catalog.SkillsOf(ctx, h.who)
			if err != nil {
				return nil, asError(err)
			}
			out := &skillsResult{Skills: make([]skill.Entry, len(all))}
			for i := range all {
				out.Skills[i] = all[i].Entry
			}
			return out, nil
		})
	if err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(h.sdk, "skills/get",
		func(ctx context.Context, _ *sdk.ServerSession, p *skillParams) (*skillResult, error) {
			one, err := h.srv.catalog.Skill(ctx, h.who, p.URI)
			if err == tools.ErrNotFound {
				return nil, invalidParams("unknown skill: skills/list names them")
			} else if err != nil {
				return nil, asError(err)
			}
			return &skillResult{Skill: one.Entry}, nil
		})
}

func invalidParams(says string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: says}
}
