"""See fakes/vllm."""
