// spdlog's sources, for --config=static. Debian ships its headers and a shared library, no archive.
#include <spdlog/async.h>
#include <spdlog/async_logger-inl.h>
#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/details/periodic_worker-inl.h>
#include <spdlog/details/registry-inl.h>
#include <spdlog/details/thread_pool-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>
#include <spdlog/sinks/base_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/sinks/stdout_color_sinks-inl.h>
#include <spdlog/sinks/stdout_sinks-inl.h>
#include <spdlog/spdlog-inl.h>

#include <mutex>

// The definitions that the headers declare as instantiated elsewhere. Of the sinks, only those that
// write to a terminal are here.
namespace spdlog {

template SPDLOG_API logger::logger(std::string name, sinks_init_list::iterator begin,
                                   sinks_init_list::iterator end);

namespace sinks {

template class base_sink<std::mutex>;
template class base_sink<details::null_mutex>;
template class stdout_sink_base<details::console_mutex>;
template class stdout_sink_base<details::console_nullmutex>;
template class stdout_sink<details::console_mutex>;
template class stdout_sink<details::console_nullmutex>;
template class stderr_sink<details::console_mutex>;
template class stderr_sink<details::console_nullmutex>;
template class ansicolor_sink<details::console_mutex>;
template class ansicolor_sink<details::console_nullmutex>;
template class ansicolor_stdout_sink<details::console_mutex>;
template class ansicolor_stdout_sink<details::console_nullmutex>;
template class ansicolor_stderr_sink<details::console_mutex>;
template class ansicolor_stderr_sink<details::console_nullmutex>;

}  // namespace sinks
}  // namespace spdlog
