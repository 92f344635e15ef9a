#include "tuning/journal.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "formats/onnx_samples.h"
#include "kilter/base/error.h"
#include "tuning/fake_backend.h"

namespace kilter::journal_test {

using onnx::testing::write_file;
using testing::error_of;
using testing::MemoryFolder;
using Open = Journal::Open;
using Records = std::vector<std::string>;

std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

bool says(const std::string& error, const std::string& words) {
    return error.find(words) != std::string::npos;
}

// Files of this process may not grow beyond `bytes` while this lives: what a full disk looks like.
class FullDisk {
  public:
    explicit FullDisk(size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        rlimit now = before_;
        now.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int);
};

class JournalTest : public ::testing::Test {
  protected:
    // A journal with these records, closed again.
    void make(const Records& records) {
        Journal journal(path_, Open::create);
        for (const std::string& record : records) journal.append(record);
    }
    MemoryFolder folder_;
    std::filesystem::path path_ = folder_ / "journal";
};

TEST_F(JournalTest, KeepsWhatWasAppendedInOrder) {
    make({R"({"type":"a"})", "", "with \t tabs, \"quotes\" and ünïcödé", std::string(100000, 'x')});
    const Records expected{R"({"type":"a"})", "", "with \t tabs, \"quotes\" and ünïcödé",
                           std::string(100000, 'x')};
    EXPECT_EQ(Journal::read(path_), expected);
    {
        Journal journal(path_, Open::resume);
        EXPECT_EQ(journal.records(), expected);
        journal.append("later");
        EXPECT_EQ(journal.records(), expected);  // what was there when it was opened
    }
    EXPECT_EQ(Journal(path_, Open::resume).records().size(), 5U);
}

TEST_F(JournalTest, IsOnTheDiskWhenAppendReturns) {
    Journal journal(path_, Open::create);
    EXPECT_TRUE(Journal::read(path_).empty());
    journal.append("one");
    EXPECT_EQ(Journal::read(path_), Records{"one"});  // while it is open
}

TEST_F(JournalTest, CreatesOnlyWhatIsNotThereAndResumesOnlyWhatIs) {
    EXPECT_TRUE(says(error_of([&] { Journal(path_, Open::resume); }), "cannot open"));
    make({"one"});
    EXPECT_TRUE(says(error_of([&] { Journal(path_, Open::create); }), "--resume"));
    EXPECT_EQ(Journal::read(path_), Records{"one"});
    EXPECT_TRUE(says(error_of([&] { Journal::read(folder_ / "missing"); }), "missing"));
    EXPECT_THROW(Journal(folder_ / "no" / "folder", Open::create), Error);
}

TEST_F(JournalTest, DropsATornLastRecordAndGoesOn) {
    make({"first", "second", "third record"});
    const std::string whole = text_of(path_);
    const size_t start = whole.rfind('\n', whole.size() - 2) + 1;
    for (size_t length = start; length < whole.size(); ++length) {
        write_file(path_, whole.substr(0, length));
        EXPECT_EQ(Journal::read(path_), (Records{"first", "second"})) << length;
        {
            Journal journal(path_, Open::resume);
            EXPECT_EQ(journal.records(), (Records{"first", "second"})) << length;
            journal.append("new");
        }
        EXPECT_EQ(Journal::read(path_), (Records{"first", "second", "new"})) << length;
    }
}

TEST_F(JournalTest, DropsALastRecordWhoseBytesNeverReachedTheDisk) {
    make({"first", "second"});
    const std::string whole = text_of(path_);
    const size_t start = whole.rfind('\n', whole.size() - 2) + 1;
    for (size_t at = start; at + 1 < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = '\0';
        write_file(path_, damaged);
        Journal journal(path_, Open::resume);
        EXPECT_EQ(journal.records(), Records{"first"}) << at;
        journal.append("new");
        EXPECT_EQ(Journal::read(path_), (Records{"first", "new"})) << at;
    }
}

TEST_F(JournalTest, NamesTheRecordThatIsDamagedInTheMiddle) {
    make({"first", "second", "third"});
    const std::string whole = text_of(path_);
    const size_t second = whole.find("second") - 9;
    for (size_t at = second; at < second + 15; ++at) {
        std::string damaged = whole;
        damaged[at] ^= 1;
        write_file(path_, damaged);
        const std::string error = error_of([&] { Journal(path_, Open::resume); });
        EXPECT_TRUE(says(error, "record 2 is damaged")) << at << ": " << error;
        EXPECT_TRUE(says(error, path_.string())) << error;
        EXPECT_THROW(Journal::read(path_), Error);
        EXPECT_EQ(text_of(path_), damaged);  // left for whoever wants to rescue it
    }
}

TEST_F(JournalTest, SurvivesBeingKilledWhileItIsMade) {
    make({});
    const std::string whole = text_of(path_);
    for (size_t length = 0; length <= whole.size(); ++length) {
        write_file(path_, whole.substr(0, length));
        {
            Journal journal(path_, Open::resume);
            EXPECT_TRUE(journal.records().empty());
            journal.append("one");
        }
        EXPECT_EQ(Journal::read(path_), Records{"one"}) << length;
    }
}

TEST_F(JournalTest, RefusesOtherFilesAndLeavesThemAlone) {
    for (const std::string text : {"#!/bin/sh\n", "kilter journal 2\n", "kilter journal 1 \n", "{}"}) {
        write_file(path_, text);
        EXPECT_TRUE(says(error_of([&] { Journal(path_, Open::resume); }), "no journal of kilter")) << text;
        EXPECT_THROW(Journal::read(path_), Error) << text;
        EXPECT_EQ(text_of(path_), text);
    }
    EXPECT_THROW(Journal(folder_.path(), Open::resume), Error);
}

TEST_F(JournalTest, BelongsToOneAtATime) {
    {
        Journal journal(path_, Open::create);
        journal.append("one");
        EXPECT_TRUE(says(error_of([&] { Journal(path_, Open::resume); }), "another process is tuning here"));
        journal.append("two");
    }
    EXPECT_EQ(Journal(path_, Open::resume).records(), (Records{"one", "two"}));
}

TEST_F(JournalTest, IsFreeAgainWhenItsProcessIsKilled) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        Journal journal(path_, Open::create);
        journal.append("one");
        [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
        while (true) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_TRUE(says(error_of([&] { Journal(path_, Open::resume); }), "another process"));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_EQ(Journal(path_, Open::resume).records(), Records{"one"});
}

TEST_F(JournalTest, AFullDiskLeavesTheFileAsItWas) {
    Journal journal(path_, Open::create);
    journal.append("one");
    const std::string before = text_of(path_);
    for (const size_t room : {0U, 1U, 9U, 12U}) {
        std::string error;
        {
            const FullDisk full(before.size() + room);
            error = error_of([&] { journal.append("a record that does not fit"); });
        }
        EXPECT_TRUE(says(error, "cannot record a trial")) << error;
        EXPECT_TRUE(says(error, "make room")) << error;
        EXPECT_EQ(text_of(path_), before) << room;
    }
    journal.append("two");  // there is room again
    EXPECT_EQ(Journal::read(path_), (Records{"one", "two"}));
}

TEST_F(JournalTest, AFullDiskLeavesNoJournalThatCannotBeMade) {
    std::string error;
    {
        const FullDisk full(5);
        error = error_of([&] { Journal(path_, Open::create); });
    }
    EXPECT_TRUE(says(error, "cannot write")) << error;
    EXPECT_FALSE(std::filesystem::exists(path_));
    make({"one"});
    EXPECT_EQ(Journal::read(path_), Records{"one"});
}

TEST_F(JournalTest, RefusesARecordOfTwoLines) {
    Journal journal(path_, Open::create);
    EXPECT_TRUE(says(error_of([&] { journal.append("one\ntwo"); }), "one line"));
    EXPECT_TRUE(Journal::read(path_).empty());
}

}  // namespace kilter::journal_test
