// Package chat is a client of the chat-completions API that OpenAI began and that Ollama, llama.cpp,
// vLLM, LM Studio, OpenRouter and others serve. It survives what these servers do differently, and
// bounds what they can send. It knows no site and no task.
package chat
