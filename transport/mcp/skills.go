package mcp

import (
	"context"

	"agentsite/agents/skill"
	"agentsite/agents/tools"
	"agentsite/transport/rpc"
)

// skillsList serves skills/list of the extension io.modelcontextprotocol/skills (SEP-2640). Their files are resources.
func (s *Server) skillsList(ctx context.Context, r request, p *listParams) (any, error) {
	if err := s.skillsOffered(); err != nil {
		return nil, err
	}
	all, err := s.catalog.SkillsOf(ctx, r.who)
	if err != nil {
		return nil, err
	}
	out := skillsResult{s.completed(), cached(cacheFor), make([]skill.Entry, len(all))}
	for i := range all {
		out.Skills[i] = all[i].Entry
	}
	return out, p.whole()
}

func (s *Server) skillsGet(ctx context.Context, r request, p *readParams) (any, error) {
	if err := s.skillsOffered(); err != nil {
		return nil, err
	}
	one, err := s.catalog.Skill(ctx, r.who, p.URI)
	if err == tools.ErrNotFound {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Unknown skill: %.120q; skills/list names them", p.URI)
	} else if err != nil {
		return nil, err
	}
	return skillResult{s.completed(), cached(cacheFor), one.Entry}, nil
}

// skillsOffered refuses both methods where discover does not declare the extension.
func (s *Server) skillsOffered() error {
	if s.catalog.Skills == nil {
		return rpc.Errorf(rpc.CodeMethodNotFound, "there are no skills here")
	}
	return nil
}
