#include "engine/shm/call_exchange-inl.hpp"

namespace tacc {

template class BasicCallExchange<NodeSegment, Waiter>;

}  // namespace tacc
