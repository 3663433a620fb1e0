#include <tonari/job.hpp>

#include "job/session.hpp"

#include <utility>

namespace tonari {

Job::Job() : session_(job::Session::of_process(job::Session::User::job)) {}

Job::Job(std::shared_ptr<job::Session> session) : session_(std::move(session)) {}

Job::~Job() = default;

JobRank Job::rank() const noexcept { return JobRank{session_->rank()}; }

int Job::size() const noexcept { return session_->size(); }

int Job::host(JobRank rank) const noexcept { return session_->host(rank.value()); }

int Job::hosts() const noexcept { return session_->hosts(); }

const std::string& Job::host_name() const noexcept { return session_->host_name(); }

Statistics Job::statistics() const noexcept { return session_->block().counters.read(); }

void Job::on_death(std::function<void(const Death&)> handler) { session_->on_death(std::move(handler)); }

void Job::abort(int code) noexcept { session_->abort(code); }

bool Job::alive(JobRank rank) const noexcept { return session_->alive(rank.value()); }

}  // namespace tonari
